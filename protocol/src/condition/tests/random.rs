//! Conditions that nobody would write, and the worst that somebody could.

use super::*;

const TOKENS: &[&str] = &[
    "args",
    "result",
    "watch",
    "process",
    "x",
    "y",
    ".",
    ".",
    ".qty",
    ".tags",
    ".items",
    ".sku",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "?",
    ":",
    ",",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    "&&",
    "||",
    " in ",
    "1",
    "0",
    "7u",
    "2.5",
    "0x1F",
    "99999999999999999999",
    "1e999",
    "'a'",
    "\"b\"",
    "r'\\'",
    "'''c'''",
    "b'd'",
    "'\\x41'",
    "'\\q'",
    "'",
    "\"",
    "\\",
    "true",
    "null",
    "has(",
    "size(",
    "int(",
    ".all(x,",
    ".exists(x,",
    ".map(x,",
    ".filter(y,",
    "//",
    "`",
    "#",
    "é",
    "\u{7f}",
    ".?",
    "[?",
    "if",
    "\u{202e}",
    "Foo{",
    ".contains(",
];

#[test]
fn token_soups_neither_panic_nor_overflow() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut read = 0;
    deep(|| {
        for round in 0..10_000 {
            let length = random.usize(1..if round % 10 == 0 { 200 } else { 12 });
            let soup: String = (0..length).map(|_| TOKENS[random.usize(..TOKENS.len())]).collect();
            match limits::check(&soup).and_then(|()| reader::read(&soup)) {
                Ok(program) => {
                    read += 1;
                    let _ = evaluate::evaluate(&program, &facts());
                }
                Err(error) => {
                    assert_ne!(error.what, What::Parser, "{soup}");
                    assert_eq!(error.to_string().lines().count(), 3, "{soup}");
                }
            }
        }
    });
    assert!(read > 20, "only {read} soups were conditions");
}

/// The kinds of expressions that fit together.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Number,
    Text,
    List,
}

/// Random expressions, mostly of parts that fit. `x` is an element inside of loops.
fn expression(random: &mut fastrand::Rng, kind: Kind, levels: u32, in_loop: bool) -> String {
    let all = [Kind::Bool, Kind::Number, Kind::Text, Kind::List];
    let kind = if random.u32(..20) == 0 { all[random.usize(..4)] } else { kind };
    let one_of =
        |random: &mut fastrand::Rng, texts: &[&'static str]| texts[random.usize(..texts.len())];
    if levels == 0 {
        let leaves: &[_] = match kind {
            Kind::Bool => &["args.gift", "true", "false", "has(args.qty)", "has(args.none)"],
            Kind::Number => &["args.qty", "args.price", "1", "7", "-3", "2.5", "0", "args.none"],
            Kind::Text => &["args.sku", "args.tags[0]", "'blue-42'", "'new'", "args['sku']", "''"],
            Kind::List => &["args.tags", "args.items", "[1, 7, 2.5]", "['new', args.note]", "[]"],
        };
        let leaf = if in_loop && random.bool() { "x" } else { one_of(random, leaves) };
        return leaf.to_owned();
    }
    let mut part = |kind| expression(random, kind, levels - 1, in_loop);
    let same = all[part(Kind::Bool).len() % 4];
    let (flag, a, b) = (part(Kind::Bool), part(kind), part(kind));
    let (c, d, list) = (part(same), part(same), part(Kind::List));
    let each = |random: &mut fastrand::Rng, names: &[&'static str], body| {
        let body = expression(random, body, levels - 1, true);
        let list = one_of(random, &["args.tags", "args.items", "args.sizes", "[1, 7]", "[0, 'x']"]);
        format!("{list}.{}(x, {body})", one_of(random, names))
    };
    match (kind, random.u32(..8)) {
        (_, 0) => format!("(({flag}) ? ({a}) : ({b}))"),
        (Kind::Bool, 1) => format!("!({a})"),
        (Kind::Bool, 2) if !in_loop => each(random, &["all", "exists", "exists_one"], Kind::Bool),
        (Kind::Bool, 3) => format!("({c}) in ({list})"),
        (Kind::Bool, 4) => {
            format!("(({c}) {} ({d}))", one_of(random, &["==", "!=", "<", "<=", ">", ">="]))
        }
        (Kind::Bool, 5) => {
            let name = one_of(random, &["contains", "startsWith", "endsWith"]);
            format!("args.sku.{name}({c})")
        }
        (Kind::Bool, _) => format!("(({a}) {} ({b}))", one_of(random, &["&&", "||"])),
        (Kind::Number, 1) => format!("-({a})"),
        (Kind::Number, 2) => format!("size({c})"),
        (Kind::Number, 3) => format!("int({c})"),
        (Kind::Number, _) => {
            format!("(({a}) {} ({b}))", one_of(random, &["+", "-", "*", "/", "%"]))
        }
        (Kind::Text, 1) => format!("string({c})"),
        (Kind::List, 1) => format!("[{c}, {d}]"),
        (Kind::List, 2 | 3) if !in_loop => each(random, &["filter"], Kind::Bool),
        (Kind::List, 4 | 5) if !in_loop => each(random, &["map"], same),
        (Kind::Text | Kind::List, _) => format!("(({a}) + ({b}))"),
    }
}

/// Facts for the interpreter of `cel`, which would take them as unsigned.
fn signed(json: &serde_json::Value) -> cel::Value {
    match json {
        serde_json::Value::Number(number) if number.is_i64() => number.as_i64().unwrap().into(),
        serde_json::Value::Array(values) => values.iter().map(signed).collect::<Vec<_>>().into(),
        serde_json::Value::Object(map) => {
            let map = map.iter().map(|(key, value)| (key.clone(), signed(value)));
            map.collect::<std::collections::HashMap<_, _>>().into()
        }
        other => cel::to_value(other).unwrap(),
    }
}

#[test]
fn what_cel_answers_is_answered_alike() {
    let mut random = fastrand::Rng::with_seed(17);
    let (mut compared, mut refused) = (0, 0);
    deep(|| {
        let mut context = cel::Context::default();
        context.add_variable_from_value("args", signed(&facts().args.unwrap()));
        for _ in 0..2_000 {
            let text = expression(&mut random, Kind::Bool, 3, false);
            let Ok(program) = limits::check(&text).and_then(|()| reader::read(&text)) else {
                continue;
            };
            let theirs = cel::Program::compile(&text).unwrap().execute(&context);
            let Ok(cel::Value::Bool(theirs)) = theirs else { continue };
            match evaluate::evaluate(&program, &facts()) {
                // It adds maps to lists, for one.
                Err(EvaluationError::Types { .. }) => refused += 1,
                ours => assert_eq!(ours, Ok(theirs), "{text}"),
            }
            compared += 1;
        }
    });
    assert!(compared > 500, "only {compared} were compared");
    assert!(refused * 50 < compared, "{refused} of {compared} were refused");
}

/// 64 KiB of arguments in shapes that hurt.
fn heavy() -> Facts {
    let words: Vec<_> = (0..6_000).map(|n| format!("word{n:04}")).collect();
    let map: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("{n}"), json!(n))).collect();
    let args = json!({
        "zeros": vec![0; 32 << 10],
        "text": "a".repeat(64 << 10),
        "words": words,
        "map": map,
        "doubles": vec![1e308; 10_000],
    });
    Facts { args: Some(args), ..facts() }
}

#[test]
fn one_look_at_everything_is_affordable() {
    for text in [
        "args.zeros.all(x, x >= 0 && x < 10 || x == 99)",
        "!args.zeros.exists(x, x > args.zeros[0] + 1)",
        "args.words.exists_one(word, word.startsWith('word') && word.endsWith('4999'))",
        "args.map.all(key, args.map[key] >= 0)",
        "args.text.contains('aaa') && !args.text.contains('b') && size(args.text) > 1",
        "args == args",
        "size(args.zeros.filter(x, x == 0)) == 32768",
    ] {
        assert_eq!(evaluate(text, &heavy()), Ok(true), "{text}");
    }
}

#[test]
fn what_explodes_is_cut_off() {
    let repeat = |part: &str, times| vec![part; times].join(" + ");
    for text in [
        "args.zeros.all(x, !(1 in args.zeros))".to_owned(),
        "args.zeros.all(x, args.zeros == args.zeros)".to_owned(),
        "args.zeros.all(x, args.text != args.text + 'a')".to_owned(),
        "args.zeros.all(x, !args.text.contains('ab'))".to_owned(),
        "args.map.all(x, args.map == args.map)".to_owned(),
        "args.words.all(x, !(x in args.zeros))".to_owned(),
        "args.zeros.map(x, args.zeros + args.zeros) == []".to_owned(),
        "args.zeros.map(x, args.text + args.text) == []".to_owned(),
        format!("args.zeros.map(x, [{}]) == []", vec!["0"; 490].join(",")),
        "args.zeros.map(x, [x,x,x,x]).map(x, x+x+x+x).map(x, x+x+x+x) == []".to_owned(),
        format!("{} == []", repeat("args.zeros", 78)),
        format!("args.doubles.map(x, {}) == []", repeat("string(x)", 80)),
        format!("args.zeros.exists(x, {})", vec!["x.no"; 120].join("||")),
    ] {
        assert!(text.len() <= limits::BYTES_MAX);
        assert_eq!(evaluate(&text, &heavy()), Err(EvaluationError::TooLong), "{text}");
    }
}

#[test]
fn facts_may_be_nested_deeply() {
    let evaluator = Evaluator::new();
    // They grow and go on threads with a deep stack, as JSON itself recurses.
    let answer = deep(|| {
        let args = (0..30_000).fold(json!(1), |inner, _| serde_json::Value::Array(vec![inner]));
        let (send, answer) = std::sync::mpsc::channel();
        let condition = Condition::check("args == args").unwrap();
        let facts = Facts { args: Some(args), ..facts() };
        evaluator.evaluate(&condition, facts, move |held| drop(send.send(held)));
        answer.recv()
    });
    assert_eq!(answer.unwrap(), Ok(true));
    let (send, after) = std::sync::mpsc::channel();
    let condition = Condition::check("args.qty == 7").unwrap();
    evaluator.evaluate(&condition, facts(), move |held| drop(send.send(held)));
    assert_eq!(after.recv().unwrap(), Ok(true));
}

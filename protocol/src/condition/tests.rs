use serde_json::json;

use super::*;

mod random;
mod threads;

fn facts() -> Facts {
    let watch = json!({"stock": 3, "leader": "inventory#1"});
    Facts {
        args: Some(json!({
            "qty": 7,
            "price": 2.5,
            "big": u64::MAX,
            "low": i64::MIN,
            "sku": "blue-42",
            "gift": true,
            "note": null,
            "in stock": 1,
            "tags": ["new", "blue"],
            "items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 5}],
            "sizes": {"s": 1, "m": 2},
        })),
        result: None,
        watch: watch.as_object().unwrap().clone(),
        process: "inventory#2".into(),
        control: "c17".into(),
    }
}

/// Reads and evaluates on a thread with the stack for it.
fn evaluate(text: &str, facts: &Facts) -> Result<bool, EvaluationError> {
    deep(|| evaluate::evaluate(&reader::read(text)?, facts))
}

fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn what_holds() {
    for text in [
        "args.qty == 7",
        "args.qty + 1 == 8",
        "args.qty - 8 < 0",
        "args.qty * 2 / 3 == 4 && args.qty % 4 == 3",
        "-args.qty == -7 && 7u == args.qty",
        "args.price * 2 == 5 && args.price > 2 && 3 > args.price && args.qty == 7.0",
        "args.big > 9223372036854775807 && args.big - 1 < args.big && args.low < 0",
        "args.gift && !(args.note != null)",
        "args['in stock'] == 1",
        "args.sku.startsWith('blue') && args.sku.endsWith(\"42\") && args.sku.contains('e-4')",
        "'new' in args.tags && !('old' in args.tags) && 's' in args.sizes",
        "args.tags[1] == 'blue' && size(args.tags) == 2 && args.tags.size() == 2",
        "args.tags + ['x'] == ['new', 'blue', 'x'] && args.sku + '!' == 'blue-42!'",
        "has(args.qty) && !has(args.quantity)",
        "args.items.exists(item, item.sku == 'b' && item.qty > 4)",
        "args.items.all(item, item.qty > 0) && args.items.exists_one(i, i.qty == 1)",
        "args.items.filter(i, i.qty > 1).map(i, i.sku) == ['b']",
        "args.items.map(i, i.qty < 3, i.qty + args.qty) == [8]",
        "args.sizes.exists(size, args.sizes[size] == 2)",
        "args.qty > 5 ? args.gift : args.nothing",
        "watch.stock < args.qty && watch.leader != process",
        "process == 'inventory#2' && control == 'c17'",
        "int('12') == 12 && int(2.9) == 2 && double(1) == 1.0 && string(args.qty) == '7'",
        "size('größe') == 5 && 'b' > 'a' && r'\\' == '\\\\'",
        "args == args && args.items != args.tags",
        // An operand that decides makes up for an error in the other one.
        "result == 1 || args.qty == 7",
        "!(args.nothing == 1 && false)",
        "args.tags.exists(tag, tag == 'blue' || tag.nothing)",
        "true // (((((((((((",
    ] {
        assert_eq!(evaluate(text, &facts()), Ok(true), "{text}");
        assert_eq!(Condition::check(text).map(String::from), Ok(text.to_owned()));
    }
}

#[test]
fn result_is_known_at_return() {
    let returned = Facts { result: Some(json!({"Ok": 4})), ..facts() };
    assert_eq!(evaluate("result.Ok == 4", &returned), Ok(true));
    assert_eq!(evaluate("result.Ok == 4", &facts()), Err(EvaluationError::NoResult));
    let unknown = Facts { args: None, ..facts() };
    assert_eq!(evaluate("args.qty == 7", &unknown), Err(EvaluationError::NoArgs));
}

#[test]
fn what_has_no_answer() {
    for (text, why) in [
        ("args.qty", "an integer is neither true nor false"),
        ("args.qty && true", "an integer is neither true nor false"),
        ("result == 1", "`result` is known only at return and resume"),
        ("args.nothing == 1", "there is no field \"nothing\": ask with has(…) first"),
        ("args.tags[2] == ''", "there is no element 2"),
        ("args.tags[-1] == ''", "there is no element -1"),
        ("args.qty + '1' == '71'", "`+` does not work on an integer and a text"),
        ("args.qty.more == 1", "`.` does not work on an integer"),
        ("args.tags < 1", "`<` does not work on a list and an integer"),
        ("size(args.qty) == 1", "`size` does not work on an integer"),
        ("args.qty.all(x, true)", "`for each` does not work on an integer"),
        ("args.qty / 0 == 1", "`/` gives a number that is too large, or none"),
        ("args.big * args.big > 0", "`*` gives a number that is too large, or none"),
        ("int('x') == 1", "`int` gives a number that is too large, or none"),
        ("args.items.all(i, i.qty > 0 && i.nothing)", "there is no field \"nothing\""),
    ] {
        let error = evaluate(text, &facts()).unwrap_err().to_string();
        assert!(error.starts_with(why), "{text}: {error}");
    }
}

#[test]
fn refusals_mark_the_place() {
    // The text, what stands above the mark, and the sentence.
    for (text, column, sentence) in [
        ("", 0, "this is not an expression: mismatched input the end"),
        ("args.qty ==", 11, "this is not an expression: mismatched input the end"),
        ("args.qty = 1", 9, "this is not an expression: token recognition error"),
        ("args.qty > 1)", 12, "this is not an expression: extraneous input ')'"),
        ("'größe' == #", 11, "this is not an expression: token recognition error"),
        ("args.qty > 99999999999999999999", 11, "this is not an expression: invalid int"),
        ("args.?qty > 1", 4, "this is not an expression: unsupported syntax"),
        ("args.sku == 'blue", 12, "this text does not end: close the quotes"),
        ("args.sku == 'it\\'", 12, "this text does not end: close the quotes"),
        ("args.sku == '''a''", 12, "this text does not end: close the quotes"),
        ("args.qty > 1\n", 12, "a condition cannot contain control characters"),
        ("'größe' == argh.sku", 11, "`argh` is not known: a condition sees args, result"),
        ("args.tags.all(x, y == 1)", 17, "`y` is not known"),
        ("args.tags.all(x, true) && x", 26, "`x` is not known"),
        ("args.sku.matches('a*')", 9, "`matches` is not known, or not with these arguments"),
        ("args.sku . startsWith ()", 11, "`startsWith` is not known, or not with these"),
        ("args.tags.all(x, true, true)", 10, "`all` is not known, or not with these arguments"),
        ("args.tags.all(1, true)", 14, "first a name for the element"),
        ("has(args)", 4, "has asks for a field"),
        ("args.tags.all(x, [x].exists(y, true))", 21, "no all, exists, exists_one, filter or map"),
        ("args == {'a': 1}", 8, "maps, structs and bytes cannot be written here"),
        ("args.sku == b'a'", 12, "maps, structs and bytes cannot be written here"),
        ("args.qty + 1", 9, "a condition is true or false, and this is neither"),
        ("size(args.tags)", 0, "a condition is true or false, and this is neither"),
    ] {
        let error = Condition::check(text).unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{text}: {error}");
        let mark = format!("\n  {}^", " ".repeat(column));
        assert!(error.ends_with(&mark), "{text}: {error}");
        assert_eq!(error.lines().count(), 3, "{text}: {error}");
        assert!(!error.contains(|c: char| c.is_control() && c != '\n'), "{error:?}");
    }
}

#[test]
fn nesting() {
    let nested = |open: &str, close: &str, levels| {
        format!("{}args.gift{} == 1", open.repeat(levels), close.repeat(levels))
    };
    for (open, close) in
        [("(", ")"), ("[", "]"), ("!(", ")"), ("-(", ")"), ("args.gift ? 1 : ", ""), ("size(", ")")]
    {
        let text = nested(open, close, limits::LEVELS_MAX);
        Condition::check(&text).unwrap_or_else(|error| panic!("{error}"));
        let text = nested(open, close, limits::LEVELS_MAX + 1);
        let error = Condition::check(&text).unwrap_err();
        let bracket = open.find(['(', '[', '?']).unwrap();
        assert_eq!(error.what, What::TooDeep, "{text}");
        assert_eq!(error.at, open.len() * limits::LEVELS_MAX + bracket, "{text}");
    }
    let brackets = "(".repeat(100);
    for text in [
        format!("args.sku == '{brackets}'"),
        format!("args.sku == \"\\\"{brackets}\""),
        format!("args.sku == r'{brackets}\\'"),
        format!("args.sku == '''it's {brackets}'''"),
        format!("args.sku == '' // {brackets}"),
        format!("args.qty in [{}]", "args.gift ? 1 : 2, ".repeat(20)),
        format!("{}args.gift", "!".repeat(1000)),
        format!("{}args.qty == 1", "-".repeat(1000)),
        format!("args.qty == 1{}", " + 1".repeat(250)),
        format!("args{} == 1", ".a".repeat(500)),
        format!("args{}", "[0]".repeat(330)),
        format!("true{}", " && true".repeat(120)),
    ] {
        Condition::check(&text).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn length() {
    let longest = format!("args.sku == '{}'", "x".repeat(limits::BYTES_MAX - 14));
    assert_eq!(longest.len(), limits::BYTES_MAX);
    Condition::check(&longest).unwrap();
    let error = Condition::check(&format!("{longest} ")).unwrap_err();
    assert_eq!((error.what, error.at), (What::TooLong, limits::BYTES_MAX));
    let huge = "é\n".repeat(1 << 20);
    assert!(Condition::check(&huge).unwrap_err().to_string().len() < 4 * limits::BYTES_MAX);
}

#[test]
fn on_the_wire_it_is_text() {
    let condition = Condition::check("args.qty > 1").unwrap();
    let wire = serde_json::to_string(&condition).unwrap();
    assert_eq!(wire, "\"args.qty > 1\"");
    assert_eq!(serde_json::from_str::<Condition>(&wire).unwrap(), condition);
    // Only the limits count here.
    serde_json::from_str::<Condition>("\"nonsense(\"").unwrap();
    for bad in [json!("(".repeat(9)), json!("1".repeat(1025)), json!("a\u{1b}b"), json!(1)] {
        assert!(serde_json::from_value::<Condition>(bad).is_err());
    }
}

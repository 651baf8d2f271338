//! What people write: breakpoints, conditions, addresses and files.

use std::path::Path;

use ddbx_central::logic::algorithm_d::{Mode, plan};
use ddbx_cli::plan::format;
use ddbx_cli::run::config::Config;
use ddbx_protocol::condition::{self, Facts};
use ddbx_protocol::link::Address;
use ddbx_protocol::{Condition, Spec};
use serde_json::json;

use super::Decoder;

/// Where a breakpoint is.
pub(super) const SPEC: Decoder = Decoder::new("spec", specs, |bytes| {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    match text.parse::<Spec>() {
        Ok(spec) => {
            let _ = ["", "inventory", "inventory#2", "*"].map(|name| spec.concerns(name));
            true
        }
        Err(error) => error.to_string().is_empty(),
    }
})
.worst(|| vec![vec![b'*'; 1 << 20], ["p:".as_bytes(), &[b'*'; 500], b"@call"].concat()])
.heap(64 << 10);

/// When it stops; what it is asked about comes after a line feed, as JSON.
pub(super) const CONDITION: Decoder = Decoder::new("condition", conditions, |bytes| {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let (text, args) = text.split_once('\n').unwrap_or((text, "null"));
    let facts = Facts { args: serde_json::from_str(args).ok(), ..Facts::default() };
    let _ = Condition::try_from(text.to_owned()).map_err(|error| error.to_string());
    match condition::holds_here(text, &facts) {
        Ok(_) => true,
        Err(error) => error.to_string().is_empty(),
    }
})
.worst(heavy_conditions)
.stack(condition::STACK_BYTES)
.share(30);

/// Where a session is.
pub(super) const ADDRESS: Decoder = Decoder::new(
    "address",
    || {
        ["shop", "unix:/run/shop.sock", "tcp:127.0.0.1:4000", "tcp:[::1]:80"]
            .map(|text| text.as_bytes().to_vec())
            .to_vec()
    },
    |bytes| match str::from_utf8(bytes).map(Address::parse) {
        Ok(Ok(address)) => !address.to_string().is_empty(),
        Ok(Err(error)) => error.to_string().is_empty(),
        Err(_) => false,
    },
);

/// `ddbx.toml`.
pub(super) const CONFIG: Decoder = Decoder::new("config", configs, |bytes| {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    match Config::parse(text, Path::new("ddbx.toml")) {
        Ok(config) => !config.processes.is_empty(),
        Err(error) => error.to_string().is_empty(),
    }
})
.worst(heavy_configs)
.share(30);

/// The input of `ddbx plan`, planned and written.
pub(super) const PLAN: Decoder = Decoder::new("plan", plans, |bytes| {
    let program = match format::parse(bytes) {
        Ok(program) => program,
        Err(error) => return error.to_string().is_empty(),
    };
    for mode in [Mode::Virtual, Mode::VirtualStrict] {
        match plan(&program, mode) {
            Ok(plan) => format::write(Vec::new(), &program, &plan).expect("it can be written"),
            Err(error) => drop(error.to_string()),
        }
    }
    true
})
.worst(|| {
    let before = "{\"executions\":";
    let nested = ["[", "{\"a\":"].map(|open| [before, &open.repeat(1 << 20)].concat().into_bytes());
    nested.to_vec()
})
.share(50);

fn specs() -> Vec<Vec<u8>> {
    let specs = [
        "inventory:Inventory.reserve@arrive",
        "inventory#2:*@*",
        "*:point(last-item)",
        "in*ry:*.re*ve@call",
        "bücher:Ärger.über@resume",
    ];
    specs.map(|spec| spec.as_bytes().to_vec()).to_vec()
}

fn conditions() -> Vec<Vec<u8>> {
    let args = json!({
        "qty": 3,
        "tags": ["a", "b", 2.5, null],
        "items": [{"sku": "x", "n": 18446744073709551615u64}, {"sku": "ü", "n": -1}],
    });
    let conditions = [
        "args.qty > 3 && process == 'inventory'",
        "has(args.qty) ? args.qty + 1 == 4 : size(args.tags) % 2 != 0",
        "args.items.exists(x, x.sku.startsWith('x') || x.n in [1, 2, 3u])",
        "args.items.map(x, x.n > 0, string(x.n)).all(s, s != r'\\')",
        "!(args.tags[0] + \"b\" == 'ab') || -args.qty * 2 / 3 <= int('7') - double(\"2.5\")",
        "args.items.filter(i, i.n == 1).exists_one(i, i.sku.contains('''x'''))",
        "result.ok == true && watch.left < 0x1F && control.endsWith('main') // why",
    ];
    conditions.map(|condition| format!("{condition}\n{args}").into_bytes()).to_vec()
}

/// Nested and chained as far as the length allows.
fn heavy_conditions() -> Vec<Vec<u8>> {
    let repeated = |part: &str, last: &str| {
        let text = part.repeat((1_023 - last.len()) / part.len());
        format!("{text}{last}")
    };
    let list = format!("[{}1]", "1,".repeat(30_000));
    let nested = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let conditions = [
        repeated("(", "true"),
        repeated("[", "1"),
        repeated("!", "true"),
        repeated("-", "1 == 1"),
        repeated("true ? true : ", "true"),
        repeated("true && ", "true"),
        repeated("1 + ", "1 == 1"),
        repeated("args.", "a == 1"),
        repeated("args[0]", " == 1"),
        "args.map(x, args.map(y, args)) == args".to_owned(),
        "args.map(x, args + args) == args".to_owned(),
        "args.map(x, args.filter(y, true)).size() == 1".to_owned(),
        "args.exists(x, args == args && string(x) + string(x) == '')".to_owned(),
    ];
    let with = |args: &str| conditions.clone().map(|text| format!("{text}\n{args}").into_bytes());
    [with(&list), with(&nested)].concat()
}

fn configs() -> Vec<Vec<u8>> {
    let everything = r#"
session = "shop"

[[process]]
name = "inventory"
command = ["cargo", "run"]
env = { RUST_LOG = "info", HOME = "${HOME}" }
dir = "services"
ready = "log:listening on .*:\\d+"
replicas = 3

[[process]]
name = "gateway"
command = ["gateway"]
ready = "tcp:[::1]:8080"
after = ["inventory"]

[[process]]
name = "client"
command = ["client"]
ready = "attached"
after = ["gateway", "inventory"]
ends_run = true
"#;
    let minimal = "[[process]]\nname = 'a'\ncommand = ['true']\n";
    [everything, minimal].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// As long as a file may be.
fn heavy_configs() -> Vec<Vec<u8>> {
    let bytes = 256 << 10;
    let process =
        |n: usize, more: &str| format!("[[process]]\nname='{n}'\ncommand=['a']\n{more}\n");
    let many = |more: &str| -> String {
        (0..bytes / process(99_999, more).len()).map(|n| process(n, more)).collect()
    };
    let after: String =
        (0..200).map(|n| process(n, &format!("after=['{}']", (n + 1) % 200))).collect();
    let texts = [
        format!("a={}", "[".repeat(bytes - 2)),
        format!("a={}", "{a=".repeat(bytes / 3 - 1)),
        format!("{}a=1", "a.".repeat(bytes / 2 - 2)),
        format!("[{}a]", "a.".repeat(bytes / 2 - 2)),
        format!("x={{{}a=1}}", "a.".repeat(bytes / 2 - 8)),
        "a=1\n".repeat(bytes / 4),
        "[[process]]\n".repeat(bytes / 12),
        "#".repeat(bytes),
        many(""),
        many("replicas=1000"),
        many("ready='log:(a{1000}){1000}'"),
        many("ready='log:\\pL{900}'"),
        process(1, &format!("ready='log:{}'", "(".repeat(bytes - 100))),
        process(1, &format!("ready='log:{}'", "\\w".repeat(bytes / 2 - 100))),
        process(1, &format!("command2=[{}]", "1,".repeat(bytes / 2 - 100))),
        after,
    ];
    texts.map(String::into_bytes).to_vec()
}

fn plans() -> Vec<Vec<u8>> {
    let plan = r#"{"executions":  [{"name": "E1", "fragments": [{"pid": "A", "time": 6}, {"pid": "S", "time": 5}]},
                   {"name": "E2", "fragments": [{"pid": "B", "time": 7}, {"pid": "S", "time": 1}, {"pid": "B", "time": 2}]}],
   "breakpoints": [{"execution": "E1", "fragment": 1, "suspend": 4}]}"#;
    let large = r#"{"executions":[{"name":"a","fragments":[{"pid":"p","time":9223372036854775807}]},{"name":"b","fragments":[{"pid":"p","time":1}]}],"breakpoints":[{"execution":"a","fragment":1,"suspend":9223372036854775807}]}"#;
    [plan, large].map(|text| text.as_bytes().to_vec()).to_vec()
}

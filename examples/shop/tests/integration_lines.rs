//! What a program needs to be debugged: one line per process, per client and per
//! server. This reads the sources of the shop and holds them to it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// The lines beyond those, by file: all of them.
const EXTRAS: [(&str, &[&str]); 6] = [
    // The type of a wrapped client, and of what wraps it.
    ("api.rs", &["use ddbx::Client;"]),
    ("rendezvous.rs", &["use ddbx::Process;"]),
    // Leases and what depends on them, in virtual time; and a place to stop.
    ("registry.rs", &["ddbx::spawn(\"lease\"", "ddbx::time::sleep("]),
    ("inventory.rs", &["ddbx::time::sleep(", "ddbx::point!"]),
    ("traffic.rs", &["ddbx::time::sleep("]),
    // Two customers at once.
    (
        "race.rs",
        &["ddbx::spawn(\"customer-1\"", "ddbx::spawn(\"customer-2\"", "ddbx::time::sleep("],
    ),
];

/// Processes, clients and servers by file.
const EXPECTED: [(&str, [usize; 3]); 7] = [
    ("gateway.rs", [1, 1, 1]),
    ("inventory.rs", [1, 2, 1]),
    ("orders.rs", [1, 3, 1]),
    ("payments.rs", [1, 0, 1]),
    ("race.rs", [1, 2, 0]),
    ("registry.rs", [1, 0, 1]),
    ("traffic.rs", [1, 3, 0]),
];

#[test]
fn one_line_per_process_client_and_server() {
    let mut seen = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let code: Vec<_> = text.lines().filter(|line| !line.trim().starts_with("//")).collect();
        let count = |mark: &str| code.iter().filter(|line| line.contains(mark)).count();

        let expected = EXPECTED.iter().find(|(file, _)| *file == name);
        seen += usize::from(expected.is_some());
        let [processes, clients, servers] = expected.map(|(_, counts)| *counts).unwrap_or_default();
        assert_eq!(count("ddbx::init("), processes, "{name}: processes");
        assert_eq!(count("Client::from("), clients, "{name}: clients");
        assert_eq!(count("Client::from(ddbx.client(channel))"), clients, "{name}: wrapped clients");
        assert_eq!(count(".execute("), servers, "{name}: servers");
        assert_eq!(count("channel.execute(ddbx.serve("), servers, "{name}: wrapped servers");

        let extras = EXTRAS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, e)| *e);
        for extra in extras {
            assert_eq!(count(extra), 1, "{name}: {extra}");
        }
        let mentions = code.iter().filter(|line| line.replace("ddbx_shop", "").contains("ddbx"));
        let mentions: Vec<_> = mentions.collect();
        let allowed = processes + clients + servers + extras.len();
        assert_eq!(mentions.len(), allowed, "{name} mentions ddbx elsewhere: {mentions:#?}");
    }
    assert_eq!(seen, EXPECTED.len(), "a file of the list is not there");
}

#[test]
fn the_session_files_name_every_process() {
    for (file, last) in [("ddbx", "traffic"), ("traffic", "traffic"), ("race", "race")] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{file}.toml"));
        let text = fs::read_to_string(file).unwrap();
        for process in ddbx_shop::services().iter().chain(&[last]) {
            assert!(text.contains(&format!("name = \"{process}\"")), "{process} has no name");
            assert!(text.contains(&format!("\"--\", \"{process}\"")), "{process} has no command");
        }
    }
}

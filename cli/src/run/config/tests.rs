use super::*;

const MINIMAL: &str = "[[process]]\nname = 'a'\ncommand = ['true']\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("ddbx.toml"))
}

#[test]
fn a_file_with_everything() {
    let config = parse(
        r#"
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
        "#,
    )
    .unwrap();
    assert_eq!(config.session.as_deref(), Some("shop"));
    let [inventory, gateway, client] = config.processes.try_into().unwrap();

    assert_eq!(inventory.name().as_str(), "inventory");
    let names: Vec<_> = inventory.replicas.iter().map(ProcessName::as_str).collect();
    assert_eq!(names, ["inventory", "inventory#2", "inventory#3"]);
    assert_eq!(inventory.command, ["cargo", "run"]);
    assert_eq!(inventory.env["HOME"], "${HOME}", "nothing is expanded");
    assert!(inventory.dir.is_absolute() && inventory.dir.ends_with("services"));
    assert!(matches!(inventory.ready, Ready::Log(regex) if regex.is_match("listening on x:80")));
    assert!(!inventory.ends_run);

    assert!(matches!(gateway.ready, Ready::Tcp(address) if address == "[::1]:8080"));
    assert_eq!(gateway.replicas.len(), 1);
    assert!(matches!(client.ready, Ready::Attached));
    let after: Vec<_> = client.after.iter().map(ProcessName::as_str).collect();
    assert_eq!(after, ["gateway", "inventory"]);
    assert!(client.ends_run);
}

#[test]
fn what_is_relative_is_relative_to_the_file() {
    let text = "[[process]]\nname = 'a'\ncommand = ['true']\ndir = 'sub'\n";
    let config = Config::parse(text, Path::new("/project/ddbx.toml")).unwrap();
    assert_eq!(config.processes[0].dir, Path::new("/project/sub"));
    let config = Config::parse(MINIMAL, Path::new("/project/ddbx.toml")).unwrap();
    assert_eq!(config.processes[0].dir, Path::new("/project"));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let process = |rest: &str| format!("[[process]]\nname = 'a'\ncommand = ['true']\n{rest}");
    let named = |name: &str| format!("[[process]]\nname = {name:?}\ncommand = ['true']\n");
    let after = |name: &str, after: &str| named(name) + &format!("after = [{after:?}]\n");
    let command = |command: &str| format!("[[process]]\nname = 'a'\ncommand = {command}\n");
    let cases: &[(String, &str)] = &[
        ("".into(), "ddbx.toml: has no [[process]] to run"),
        ("nonsense".into(), "ddbx.toml:1:9: "),
        ("colour = 1".into(), "ddbx.toml:1:1: unknown field `colour`"),
        (process("comand = []"), "ddbx.toml:4:1: unknown field `comand`"),
        ("[[process]]\ncommand = ['x']".into(), "ddbx.toml:1:1: missing field `name`"),
        ("[[process]]\nname = 'x'".into(), "ddbx.toml:1:1: missing field `command`"),
        (command("'true'"), "ddbx.toml:3:11: invalid type: string \"true\""),
        (command("[]"), "ddbx.toml:3:11: the command is empty"),
        (command("['']"), "ddbx.toml:3:11: the command is empty"),
        (command(r#"["a", "\u0000"]"#), "ddbx.toml:3:17: neither arguments nor variables"),
        (process("env = {'A=B' = 'c'}"), "ddbx.toml:4:16: \"A=B\" is not the name of a variable"),
        (process("env = {A = 1}"), "ddbx.toml:4:12: invalid type: integer `1`"),
        (named("a b"), "ddbx.toml:2:8: a process name cannot contain ' '"),
        (named(""), "ddbx.toml:2:8: a process name cannot be empty"),
        (named(&"x".repeat(129)), "ddbx.toml:2:8: a process name can have at most 128 bytes"),
        (named("a#2"), "ddbx.toml:2:8: a process name cannot contain '#'"),
        (named("a") + &named("a"), "ddbx.toml:5:8: two processes are called \"a\""),
        (after("a", "b"), "ddbx.toml:4:10: there is no process \"b\" to start after"),
        (after("a", "a"), "ddbx.toml:4:10: nobody can start first: a after a"),
        (
            named("d") + &after("e", "c") + &after("a", "b") + &after("b", "c") + &after("c", "a"),
            "nobody can start first: a after b after c after a",
        ),
        (
            process("ready = 'log:(('"),
            "ddbx.toml:4:9: \"((\" is not a regular expression: unclosed",
        ),
        (process("ready = 'tcp:localhost'"), "ddbx.toml:4:9: \"localhost\" is not HOST:PORT"),
        (process("ready = 'tcp:[::1]:0'"), "ddbx.toml:4:9: \"[::1]:0\" is not HOST:PORT"),
        (process("ready = 'soon'"), "ddbx.toml:4:9: \"soon\" is not log:REGEX, tcp:ADDR or"),
        (process("replicas = 0"), "ddbx.toml:4:12: replicas counts all of them: at least 1"),
        (process("replicas = -1"), "ddbx.toml:4:12: invalid value: integer `-1`"),
        (process("replicas = 1001"), "ddbx.toml:4:12: replicas can be at most 1000"),
        (
            process("replicas = 999\n") + "[[process]]\nname='b'\ncommand=['b']\nreplicas=2",
            "ddbx.toml: a run has at most 1000 processes",
        ),
        (process("ends_run = 'yes'"), "ddbx.toml:4:12: invalid type: string \"yes\""),
    ];
    for (text, expected) in cases {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}\n{error}\ninstead of\n{expected}");
    }
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ddbx.toml");
    let error = |path| Config::read(path).unwrap_err().to_string();
    assert!(error(&path).contains("ddbx.toml: cannot read it: No such file"));
    assert!(error(folder.path()).contains("cannot read it"));
    std::fs::write(&path, [0xff]).unwrap();
    assert!(error(&path).contains("not TOML: invalid utf-8"));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(error(&path).contains("over 256 KiB"));
    std::fs::write(&path, format!("\u{feff}{MINIMAL}")).unwrap();
    assert!(Config::read(&path).is_ok());
}

/// A few letters can stand for gigabytes.
#[test]
fn what_a_file_claims_takes_no_memory() {
    let large = MINIMAL.to_owned() + "ready = 'log:(a{1000}){1000}'\n";
    let error = parse(&large).unwrap_err();
    assert!(error.message.contains("exceeds size limit"), "{error}");
    let long = MINIMAL.to_owned() + &format!("ready = 'log:{}'\n", r"\w".repeat(10_000));
    let error = parse(&long).unwrap_err();
    assert!(error.message.contains("at most 1024 bytes"), "{error}");
    let process = |n| format!("[[process]]\nname = '{n}'\ncommand = ['a']\nreplicas = 1000\n");
    let many: String = (0..2_000).map(process).collect();
    let error = parse(&many).unwrap_err();
    assert!(error.message.contains("at most 1000 processes"), "{error}");
}

/// What people write fits, also where many wait for different lines.
#[test]
fn ordinary_expressions_have_room() {
    let process = |n| {
        let ready = format!(r"ready = 'log:(?i)^\[\d{{4}}-\d\d.*\] \w+ {n}: ready in \d+ ?ms$'");
        format!("[[process]]\nname = '{n}'\ncommand = ['a']\n{ready}\n")
    };
    let many: String = (0..50).map(process).collect();
    let config = parse(&many).unwrap();
    let line = "[2026-01-01] INFO 49: ready in 5ms";
    assert!(matches!(&config.processes[49].ready, Ready::Log(regex) if regex.is_match(line)));
}

//! Programs of the kind that users write: what luck decided when they were recorded
//! comes again in every replay.

use std::fs;

use ddbx_tests::waiting::until;
use rustix::process::Signal;

use crate::process::Process;
use crate::troupe::{BANK, Is, LATE, Part, Play, bank_with, is_identical, lines, luck_comes_again};

#[test]
fn who_comes_first_at_a_bank_that_asks_others() {
    luck_comes_again(&BANK);
}

#[test]
fn deadlines_timeouts_and_who_answers_first() {
    luck_comes_again(&LATE);
}

#[test]
fn processes_that_are_started_on_the_way() {
    luck_comes_again(&[
        Part::of("board", Is::Server, &[]),
        Part::of("parent", Is::Client, &["board"]),
    ]);
}

#[test]
fn a_main_outside_all_controls() {
    luck_comes_again(&[
        Part::of("board", Is::Server, &[]),
        Part::of("outside", Is::Client, &["board"]),
    ]);
}

#[test]
fn choices_and_what_tasks_share() {
    luck_comes_again(&[
        Part::of("board", Is::Server, &[]),
        Part::of("dice", Is::Client, &["board"]),
    ]);
}

/// One exits before it has said anything, one goes on for ever, one never calls.
#[test]
fn processes_that_do_not_do_much() {
    let play = Play::new(&[
        Part::of("idle", Is::Bystander, &[]),
        Part { words: &["idle", "--stays"], ..Part::of("stays", Is::Bystander, &[]) },
        Part::of("board", Is::Server, &[]),
        Part::of("outside", Is::Client, &["board"]),
    ]);
    let printed = play.record("recording");
    play.comes_again("recording", &printed);
}

/// The end of a run comes in the middle of whatever the others do.
#[test]
fn others_are_busy_when_the_run_ends() {
    let busy = Part {
        words: &["customers", "--number", "8", "--visits", "100000", "--pays-only"],
        ..Part::of("busy", Is::Bystander, &["bank"])
    };
    let play = Play::new(&[BANK[0], BANK[1], BANK[2], busy]);
    for nth in 0..3 {
        let recording = format!("recording-{nth}");
        let own = |printed: Vec<String>| -> Vec<String> {
            printed.into_iter().filter(|line| line.starts_with("customers")).collect()
        };
        let printed = own(play.record(&recording));
        let done = play.replay(&recording, &[]);
        assert!(
            done.code == 0 && is_identical(&done),
            "{:?} {:?}",
            done.err,
            done.out.lines().last()
        );
        assert_eq!(own(lines(&done.out)), printed);
    }
}

/// What processes do because they are asked to end is no part of the run.
#[test]
fn who_does_something_more_when_asked_to_end() {
    let polite = Part { words: &["bank", "--is-polite"], ..BANK[1] };
    let play = Play::new(&[BANK[0], polite, BANK[2]]);
    let printed = play.record("recording");
    play.comes_again("recording", &printed);
}

/// Somebody exits while others of its tasks make calls: none of them arrives without
/// having left.
#[test]
fn who_exits_in_the_middle_of_its_calls_has_a_sound_recording() {
    let words = &["customers", "--number", "8", "--pays-only", "--exits-early"];
    let play = Play::new(&[BANK[0], BANK[1], Part { words, ..BANK[2] }]);
    for nth in 0..6 {
        let recording = format!("recording-{nth}");
        play.record(&recording);
        let done = play.ddbx(&["verify", &recording]);
        assert_eq!(done.code, 0, "{done:?}");
    }
}

#[test]
fn a_failure_that_was_found_comes_again() {
    for words in [
        &["customers", "--fails-if-overdrawn"][..],
        &["customers", "--fails-if-overdrawn", "--by-panic"],
    ] {
        let play = Play::new(&[BANK[0], BANK[1], Part { words, ..BANK[2] }]);
        let found = play.ddbx(&[
            "run",
            "--headless",
            "--until-fails",
            "--perturb",
            "1",
            "--record",
            "found",
        ]);
        assert_eq!(found.code, 1, "{found:?}");
        let mut runs = fs::read_dir(play.cluster.path("found")).unwrap();
        let recording = runs.next().unwrap().unwrap().path();
        assert!(runs.next().is_none(), "good runs are removed");
        let first = play.replay(recording.to_str().unwrap(), &[]);
        assert!(lines(&first.out).iter().any(|line| line.contains("least -")), "{first:?}");
        play.comes_again(recording.to_str().unwrap(), &lines(&first.out));
    }
}

#[test]
fn a_breakpoint_in_a_replay_disturbs_nothing() {
    let play = Play::new(&BANK);
    let printed = play.record("recording");
    let cluster = &play.cluster;
    let mut replay = Process::start(&mut cluster.ddbx_command(&[
        "replay",
        "recording",
        "--headless",
        "--patience",
        "2s",
        "-b",
        "auditor:Auditor.approve@arrive",
    ]));
    let hit = until("somebody stands there", || {
        let hit = cluster.ddbx(&["wait", "--hit", "1", "--timeout", "1s", "--json"]);
        (hit.code == 0).then_some(hit.out)
    });
    assert!(hit.contains("Auditor.approve@arrive"), "{hit}");
    // For longer than nothing may happen otherwise.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let holds = cluster.holds();
    let hold = holds.iter().find(|hold| hold["reason"] == "breakpoint").unwrap();
    let id = hold["id"].to_string();
    let way = cluster.ddbx(&["bt", &id]).well();
    assert!(way.contains("#1 bank  Bank.withdraw") && way.contains("#2 customers"), "{way}");
    cluster.ddbx(&["delete", "1"]).well();
    cluster.ddbx(&["continue", "--all"]).well();
    let code = replay.end().code();
    assert_eq!(code, Some(0), "{} {}", replay.printed(), replay.complained());
    assert!(replay.printed().contains("events, identical"), "{}", replay.printed());
    assert_eq!(lines(&replay.printed()), printed);
    assert_eq!(cluster.left_over(), []);
}

#[test]
fn ctrl_c_ends_a_replay() {
    let play = Play::new(&BANK);
    play.record("recording");
    let cluster = &play.cluster;
    let mut replay = Process::start(&mut cluster.ddbx_command(&[
        "replay",
        "recording",
        "--headless",
        "-b",
        "bank:Bank.withdraw@arrive",
    ]));
    until("somebody stands there", || {
        (cluster.ddbx(&["wait", "--hit", "1", "--timeout", "1s"]).code == 0).then_some(())
    });
    replay.signal(Signal::INT);
    assert_eq!(replay.end().code(), Some(130), "{}", replay.complained());
    assert_eq!(cluster.left_over(), []);
}

/// One in the middle never answers.
#[test]
fn a_replay_that_cannot_go_on_says_who_waits_for_what() {
    let play = Play::new(&BANK);
    play.record("recording");
    let silent = Part { words: &["auditor", "--is-silent"], ..BANK[0] };
    play.write("other.toml", &[silent, BANK[1], BANK[2]]);
    let words = ["-f", "other.toml", "--patience", "2s"];
    let done = play.replay("recording", &words);
    assert_eq!(done.code, 3, "{done:?}");
    let said = done.out.lines().filter(|line| !line.contains(" | ")).collect::<Vec<_>>().join("\n");
    assert!(said.starts_with("the replay cannot go on:\nauditor waits for auditor:"), "{said}");
    assert!(said.contains("point thought  customers/customer-"), "{said}");
    assert!(said.contains("which is sent by auditor:"), "{said}");
    let json = play.replay("recording", &[&words[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&json["identical"], &json["stalled"][0]["process"]),
        (&false.into(), &"auditor".into())
    );
    assert!(json["stalled"][0]["expected"]["point"]["control"].is_string(), "{json}");
    assert_eq!(play.cluster.left_over(), []);
}

/// The customers pay something at the end that they did not pay then, or not any more.
#[test]
fn a_program_that_was_changed_is_told_where() {
    let play = Play::new(&BANK);
    play.record("recording");
    let changed = |words| {
        play.write("other.toml", &bank_with(words));
        let words = ["-f", "other.toml", "--patience", "2s"];
        let done = play.replay("recording", &words);
        assert_eq!(done.code, 3, "{done:?}");
        let json = play.replay("recording", &[&words[..], &["--json"]].concat());
        let said: Vec<_> = done.out.lines().filter(|line| !line.contains(" | ")).collect();
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        let divergence = json["divergence"].clone();
        assert_eq!(divergence["process"], "customers", "{json}");
        let control = divergence["control"].as_str().unwrap();
        assert!(control.starts_with("customers/customer-"), "{json}");
        assert!(divergence["number"].as_u64().unwrap() > 0 && divergence["recent"].is_array());
        (said.join("\n"), divergence)
    };
    let (said, json) = changed(&["customers", "--pays-fee"]);
    assert!(said.starts_with("customers does not do what was recorded, at customers:"), "{said}");
    assert!(said.contains("\n  control   customers/customer-"), "{said}");
    assert!(
        said.contains("\n  expected  customers/customer-") && said.contains(" ends\n"),
        "{said}"
    );
    assert!(said.contains("\n  actual    calls Bank.fee  customers/customer-"), "{said}");
    assert!(said.contains("the last events that both have in common:\n    customers:"), "{said}");
    assert!(json["expected"]["ended"].is_object() && json["actual"]["call_sent"].is_object());

    let (said, json) = changed(&["customers", "--visits", "2"]);
    assert!(said.contains("\n  expected  calls Bank.withdraw  customers/customer-"), "{said}");
    assert!(said.contains("\n  actual    customers/customer-"), "{said}");
    assert!(json["expected"]["call_sent"].is_object() && json["actual"]["ended"].is_object());

    let (said, _) = changed(&["customers", "--pays-only"]);
    assert!(said.contains("\n  expected  calls Bank.withdraw  customers/customer-"), "{said}");
    assert!(said.contains("\n  actual    calls Bank.fee  customers/customer-"), "{said}");
}

/// What comes after the last recorded event of a process that ended is noticed too.
#[test]
fn a_process_that_does_more_than_it_did_is_told() {
    let of = |number| {
        [
            Part::of("board", Is::Server, &[]),
            Part { words: number, ..Part::of("child", Is::Client, &["board"]) },
        ]
    };
    let play = Play::new(&of(&["child", "anna", "--writes", "3"]));
    play.record("recording");
    play.write("other.toml", &of(&["child", "anna", "--writes", "4"]));
    let done = play.replay("recording", &["-f", "other.toml", "--patience", "1s"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(
        done.out.contains("\n  expected  the end of child\n  actual    calls Board.write"),
        "{done:?}"
    );
    play.write("other.toml", &of(&["child", "anna", "--writes", "2"]));
    let done = play.replay("recording", &["-f", "other.toml", "--patience", "1s"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.out.contains("child has ended before child:"), "{done:?}");
}

/// All happens as it did, and then it ends in another way, or not at all.
#[test]
fn another_end_is_told() {
    let play = Play::new(&[
        Part::of("board", Is::Server, &[]),
        Part { words: &["child", "anna"], ..Part::of("child", Is::Client, &["board"]) },
    ]);
    play.record("recording");
    for (more, told) in [
        ("--fails", "but child exited with code 7, and exited with 0 when recorded"),
        ("--stays", "child has done all that it did, and does not end"),
    ] {
        play.write(
            "other.toml",
            &[
                Part::of("board", Is::Server, &[]),
                Part {
                    words: &["child", "anna", more],
                    ..Part::of("child", Is::Client, &["board"])
                },
            ],
        );
        let done = play.replay("recording", &["-f", "other.toml", "--patience", "1s"]);
        assert!(done.code == 3 && done.out.contains(told), "{done:?}");
    }
}

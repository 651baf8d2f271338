//! The screen, on a terminal, as a person uses it.

use ddbx_tests::tty::Tty;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

const ESC: &str = "\x1b";

/// With nothing but the keys that the help shows.
#[test]
fn a_breakpoint_is_set_and_hit_and_explained_and_left() {
    for size in SIZES {
        let cluster = Cluster::new();
        let mut screen = Tty::start(&cluster.ddbx_command(&["demo"]), size);
        screen.shows("traffic ");
        screen.types("?");
        screen.shows("set a breakpoint here");
        screen.types(ESC);
        screen.is("the help is closed", |shown| !shown.contains("set a breakpoint here"));
        screen.types("4b");
        screen.shows("where");
        screen.types("inventory:Inventory.reserve@arrive\r");
        // That it is set, or that it is hit already.
        screen.shows("breakpoint 1 is");
        screen.types("2");
        screen.shows("breakpoint 1");
        screen.shows("waits for hold");
        screen.types("w");
        screen.shows("Breakpoint 1 has stopped it.");
        screen.types(ESC);
        screen.is("it is closed", |shown| !shown.contains("has stopped it."));
        screen.types("\r");
        screen.shows("How it came here");
        screen.types(ESC);
        screen.is("it is closed", |shown| !shown.contains("How it came here"));
        // The next one would come at once: so it is switched off first.
        screen.types("4 ");
        screen.shows("breakpoint 1 is off");
        screen.types("2c");
        screen.shows("goes on");
        screen.is("nobody is held", |shown| shown.contains("│ 0 held, 0 waiting"));
        for (key, on_screen) in
            [("3", "deadline in"), ("5", "traffic"), ("6", "receives"), ("7", "goes on (hold")]
        {
            screen.types(key);
            screen.shows(on_screen);
        }
        screen.types("q");
        assert_eq!(screen.ends_well(), 0, "{}", screen.text());
    }
}

#[test]
fn central_is_killed_and_comes_back() {
    let (cluster, mut central) = Cluster::open();
    let mut screen = Tty::start(&cluster.screen_command(&["--session", "main"]), (80, 24));
    screen.shows("nobody takes part yet");
    central.kill();
    screen.shows("CENTRAL IS GONE");
    screen.types("P");
    screen.shows("nothing can be asked of the session now");
    let _central = cluster.central();
    screen.is("central is back", |shown| !shown.contains("CENTRAL IS GONE"));
    screen.types("7");
    screen.shows("the session answers again");
    screen.types("q");
    assert_eq!(screen.ends_well(), 0);
}

#[test]
fn the_terminal_is_given_back_after_a_signal_and_after_a_panic() {
    let (cluster, _central) = Cluster::open();
    let mut screen = Tty::start(&cluster.screen_command(&[]), (80, 24));
    screen.shows("nobody takes part yet");
    kill_process(Pid::from_raw(screen.pid() as i32).unwrap(), Signal::TERM).unwrap();
    assert_eq!(screen.ends_well(), 143);
    assert!(screen.echoes());

    let mut command = cluster.screen_command(&[]);
    let mut screen = Tty::start(command.env("PANICS", "main").env("RUST_BACKTRACE", "0"), (80, 24));
    screen.shows("nobody takes part yet");
    assert_eq!(screen.ends_well(), 101);
    assert!(screen.echoes());
    screen.shows("on purpose");
}

#[test]
fn a_terminal_that_changes_its_size() {
    let (cluster, _central) = Cluster::open();
    let mut screen = Tty::start(&cluster.screen_command(&["--watch-only"]), (80, 24));
    screen.shows("watch only");
    screen.resize(40, 10);
    screen.shows("too small");
    screen.resize(250, 70);
    screen.shows("watch only");
    screen.types("P");
    screen.shows("nothing can be changed");
    screen.types("q");
    assert_eq!(screen.ends_well(), 0);
}

#[test]
fn what_cannot_be_shown_says_why() {
    let cluster = Cluster::new();
    let ends = |words: &[&str], code, sentence: &str| {
        let mut screen = Tty::start(&cluster.screen_command(words), (120, 24));
        assert_eq!(screen.ends_well(), code, "{words:?}");
        screen.shows(sentence);
    };
    ends(&[], 4, "no session runs");
    ends(&["--session", "no such:name"], 2, "error: ");
    let output = cluster.screen_command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: the screen needs a terminal"), "{said}");
}

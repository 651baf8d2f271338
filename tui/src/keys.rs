//! Which key does what, in one table: what is pressed and what `?` shows both come from it.

use std::fmt;

use crate::state::Screen;

/// A key as the screen understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character, as typed.
    Char(char),
    /// A letter with Ctrl.
    Ctrl(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ') => f.write_str("Space"),
            Self::Char(character) => write!(f, "{character}"),
            Self::Ctrl(character) => write!(f, "Ctrl-{}", character.to_ascii_uppercase()),
            Self::Up => f.write_str("↑"),
            Self::Down => f.write_str("↓"),
            Self::Left => f.write_str("←"),
            Self::Right => f.write_str("→"),
            Self::BackTab => f.write_str("Shift-Tab"),
            Self::PageUp => f.write_str("PgUp"),
            Self::PageDown => f.write_str("PgDn"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Shows another screen.
    Show(Screen),
    /// Shows the next screen.
    NextScreen,
    /// Shows the screen before.
    LastScreen,
    /// Moves the selection by so many rows.
    Move(isize),
    /// Moves it by so many pages.
    Page(isize),
    /// Moves it to the first row.
    First,
    /// Moves it to the last row.
    Last,
    /// Moves sideways: lanes and long lines.
    Sideways(isize),
    /// Shows more of what is selected.
    Open,
    /// Closes what is on top, or forgets the filter.
    Back,
    /// Asks for a filter.
    Filter,
    /// Goes to the next, or the last, event that is like the selected one.
    Find(isize),
    /// Sets a breakpoint at what is selected.
    Break,
    /// Changes the selected breakpoint.
    Edit,
    /// Removes the selected breakpoint.
    Delete,
    /// Switches the selected breakpoint on or off.
    Toggle,
    /// Lets what is selected go on.
    Continue,
    /// Lets everybody go on.
    ContinueAll,
    /// Lets what is selected go on whatever the rule says.
    Release,
    /// Holds a process.
    Pause,
    /// Holds everybody.
    Panic,
    /// Says why something stands still.
    Why,
    /// Follows what happens, or stays.
    Follow,
    /// Shows more, or less, time on the same room.
    Zoom(isize),
    /// Moves the time of a recording by so many events.
    Seek(isize),
    /// Asks for a command.
    Command,
    /// Shows what keys do.
    Help,
    /// Ends the screen.
    Quit,
}

/// Where a key means this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// On all screens.
    All,
    /// On these.
    These(&'static [Screen]),
    /// On all screens of a session, but not of a recording.
    Session,
    /// On these screens of a session.
    OfSession(&'static [Screen]),
    /// On all screens of a recording.
    Recording,
}

/// Some keys, what they do, and how that is said.
#[derive(Debug)]
pub struct Binding {
    /// Any of them.
    pub keys: &'static [(Key, Action)],
    /// For people.
    pub help: &'static str,
    on: On,
}

use Action as A;
use Key::Char as C;
use Screen as S;

const fn bind(on: On, keys: &'static [(Key, Action)], help: &'static str) -> Binding {
    Binding { keys, help, on }
}

const TIMED: &[Screen] = &[S::SpaceTime, S::Events];

static BINDINGS: &[Binding] = &[
    bind(
        On::All,
        &[
            (C('1'), A::Show(S::Processes)),
            (C('2'), A::Show(S::Holds)),
            (C('3'), A::Show(S::Calls)),
            (C('4'), A::Show(S::Breakpoints)),
            (C('5'), A::Show(S::SpaceTime)),
            (C('6'), A::Show(S::Events)),
            (C('7'), A::Show(S::Log)),
        ],
        "the screens, by their numbers",
    ),
    bind(
        On::All,
        &[(Key::Tab, A::NextScreen), (Key::BackTab, A::LastScreen)],
        "next screen, the one before",
    ),
    bind(
        On::All,
        &[
            (Key::Down, A::Move(1)),
            (C('j'), A::Move(1)),
            (Key::Up, A::Move(-1)),
            (C('k'), A::Move(-1)),
        ],
        "down, up",
    ),
    bind(
        On::All,
        &[
            (Key::PageDown, A::Page(1)),
            (Key::Ctrl('d'), A::Page(1)),
            (Key::PageUp, A::Page(-1)),
            (Key::Ctrl('u'), A::Page(-1)),
        ],
        "a page down, up",
    ),
    bind(
        On::All,
        &[(C('g'), A::First), (Key::Home, A::First), (C('G'), A::Last), (Key::End, A::Last)],
        "to the first, to the last",
    ),
    bind(
        On::These(&[S::SpaceTime]),
        &[
            (Key::Left, A::Sideways(-1)),
            (C('h'), A::Sideways(-1)),
            (Key::Right, A::Sideways(1)),
            (C('l'), A::Sideways(1)),
        ],
        "to the event before, to the next",
    ),
    bind(On::All, &[(Key::Enter, A::Open)], "more about what is selected"),
    bind(On::All, &[(Key::Esc, A::Back)], "close what is open; show all again"),
    bind(On::All, &[(C('/'), A::Filter)], "show only what has this text"),
    bind(
        On::These(&[S::Events]),
        &[(C('n'), A::Find(1)), (C('N'), A::Find(-1))],
        "next of the same control, the one before",
    ),
    bind(On::These(TIMED), &[(C(' '), A::Follow)], "follow what happens, or stay here"),
    bind(
        On::These(&[S::SpaceTime]),
        &[(C('+'), A::Zoom(1)), (C('='), A::Zoom(1)), (C('-'), A::Zoom(-1))],
        "less time on the screen, more",
    ),
    bind(
        On::Recording,
        &[
            (C(']'), A::Seek(1)),
            (C('['), A::Seek(-1)),
            (C('}'), A::Seek(100)),
            (C('{'), A::Seek(-100)),
        ],
        "time: an event on, back; 100 on, back",
    ),
    bind(On::Session, &[(C('b'), A::Break)], "set a breakpoint here"),
    bind(On::OfSession(&[S::Breakpoints]), &[(C('e'), A::Edit)], "change this breakpoint"),
    bind(On::OfSession(&[S::Breakpoints]), &[(C(' '), A::Toggle)], "switch it off, or on"),
    bind(On::OfSession(&[S::Breakpoints]), &[(C('d'), A::Delete)], "remove it"),
    bind(On::Session, &[(C('c'), A::Continue)], "let this one go on"),
    bind(On::Session, &[(C('C'), A::ContinueAll)], "let everybody go on"),
    bind(On::Session, &[(C('r'), A::Release)], "let it go on whatever the rule says (asks)"),
    bind(On::Session, &[(C('p'), A::Pause)], "hold this process, or let it go on"),
    bind(On::Session, &[(C('P'), A::Panic)], "hold everybody, now"),
    bind(On::All, &[(C('w'), A::Why)], "why does it stand still?"),
    bind(On::All, &[(C(':'), A::Command)], "a command, with Tab to complete"),
    bind(On::All, &[(C('?'), A::Help)], "this help"),
    bind(On::All, &[(C('q'), A::Quit), (Key::Ctrl('c'), A::Quit)], "quit"),
];

/// What can be pressed on a screen.
pub fn bindings(screen: Screen, is_recording: bool) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |binding| match binding.on {
        On::All => true,
        On::These(screens) => screens.contains(&screen),
        On::Session => !is_recording,
        On::OfSession(screens) => !is_recording && screens.contains(&screen),
        On::Recording => is_recording,
    })
}

/// What a key does on a screen.
pub fn action(screen: Screen, is_recording: bool, key: Key) -> Option<Action> {
    let mut keys = bindings(screen, is_recording).flat_map(|binding| binding.keys);
    keys.find(|(bound, _)| *bound == key).map(|(_, action)| *action)
}

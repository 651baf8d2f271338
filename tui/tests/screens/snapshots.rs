//! What each screen looks like in each situation.

use ddbx_tui::keys::Key;
use ddbx_tui::state::{Screen, State};
use ddbx_tui::view::{self, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::{SITUATIONS, held, press, types};

/// The sizes that must be useful.
pub const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

pub fn drawn(state: &mut State, size: (u16, u16)) -> String {
    terminal(state, size).backend().to_string()
}

/// The whole terminal, for who asks where its cursor is.
pub fn terminal(state: &mut State, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    state.handle_size(view::page(state, ratatui::layout::Rect::new(0, 0, width, height)));
    terminal.draw(|frame| view::draw(frame, state, &Theme::new(false))).unwrap();
    terminal
}

#[test]
fn every_screen_in_every_situation() {
    for (situation, state) in SITUATIONS {
        for (number, screen) in (1..).zip(Screen::ALL) {
            for size in SIZES {
                let mut state = state();
                types(&mut state, &number.to_string());
                let name = format!("{situation}-{}-{}x{}", screen.title(), size.0, size.1);
                insta::assert_snapshot!(name, drawn(&mut state, size));
            }
        }
    }
}

#[test]
fn what_lies_over_a_screen() {
    let opened: [(&str, &str, &[Key]); 6] = [
        ("hold", "2", &[Key::Enter]),
        ("why", "2jw", &[]),
        ("process", "1j", &[Key::Enter]),
        ("release", "2jr", &[]),
        ("quit", "q", &[]),
        ("help", "5?", &[]),
    ];
    for (name, typed, pressed) in opened {
        for size in SIZES {
            let mut state = held();
            types(&mut state, typed);
            press(&mut state, pressed);
            let name = format!("over-{name}-{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, drawn(&mut state, size));
        }
    }
}

/// From the smallest that is possible to larger ones than anybody has: nobody panics, all is
/// filled, and what is too small says so.
#[test]
fn any_size() {
    for (_, state) in SITUATIONS {
        for screen in 1..=7 {
            for size in [(1, 1), (10, 3), (60, 12), (79, 23), (250, 70), (400, 120)] {
                let mut state = state();
                types(&mut state, &screen.to_string());
                let text = drawn(&mut state, size);
                let is_small = size.0 < view::WIDTH_MIN || size.1 < view::HEIGHT_MIN;
                assert_eq!(text.contains("too small") || size.0 < 10, is_small, "{size:?}\n{text}");
                types(&mut state, "?");
                drawn(&mut state, size);
                press(&mut state, &[Key::Esc, Key::Enter]);
                drawn(&mut state, size);
            }
        }
    }
}

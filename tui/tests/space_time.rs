//! The diagram of space and time: what is selected, and what it looks like.

mod story;

use ddbx_tui::state::State;
use insta::assert_snapshot;
use story::{Story, drawn, press, shop};

fn of(story: &Story) -> State {
    let mut state = State::of_session("shop", false);
    for event in &story.events {
        state.events.push_at(event.clone(), event.at.as_nanos());
    }
    press(&mut state, "5");
    state
}

#[test]
fn looks() {
    let mut state = of(&shop());
    for (name, keys) in [("follows", ""), ("selected", "←←←"), ("ms", "---")] {
        press(&mut state, keys);
        assert_snapshot!(format!("{name}-80"), drawn(&state, 80, 24));
        assert_snapshot!(format!("{name}-120"), drawn(&state, 120, 40));
    }
}

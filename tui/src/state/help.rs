//! What keys do.

use super::detail::DetailLine;
use super::table::Mark;
use super::{Screen, State};
use crate::{keys, words};

/// What the signs of the diagram mean.
pub const LEGEND: &str =
    "● leaves ▼▲ arrives │ call ┊ return ◆ point ✕ late ■ several • other ░ stood";

/// What is shown, line by line.
pub fn lines(state: &State) -> Vec<DetailLine> {
    let text = format!("Keys on {}", state.screen.title());
    let mut lines = vec![DetailLine { text, mark: Mark::Title }];
    for binding in keys::bindings(state.screen, state.is_recording()) {
        let keys = binding.keys.iter().map(|(key, _)| key.to_string());
        let keys = keys.collect::<Vec<_>>().join(" ");
        lines.push(format!("  {keys:<25} {}", binding.help).into());
    }
    lines.push("".into());
    if state.screen == Screen::SpaceTime {
        lines.push(LEGEND.into());
        lines.push("of the selected event: ● before, ○ after, · beside (neither)".into());
        lines.push("".into());
    }
    lines.push("held: you hold it. waiting: it goes on by itself when order allows.".into());
    lines.push("clock: virtual time, real time less the delay; deadlines count only that.".into());
    lines.push("".into());
    lines.push(DetailLine { text: "Words after :".to_owned(), mark: Mark::Title });
    for (usage, does) in words::list() {
        lines.push(format!("  {usage:<24} {does}").into());
    }
    lines
}

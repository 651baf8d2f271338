//! What happened where and when: a lane for each process, and calls between them.

use super::events::EventLog;

/// What of it is shown.
#[derive(Clone, Debug)]
pub struct SpaceTime {
    /// Whether the latest is shown.
    pub follows: bool,
    selected: Option<u64>,
}

impl Default for SpaceTime {
    fn default() -> Self {
        Self { follows: true, selected: None }
    }
}

impl SpaceTime {
    /// New events have come.
    pub fn follow(&mut self, _events: &EventLog) {}

    /// Selects another event of the lane, so many further.
    pub fn select(&mut self, _events: &EventLog, _by: isize) {}

    /// Selects an event of another lane, so many further down.
    pub fn step(&mut self, _events: &EventLog, _by: isize) {}

    /// Shows less time, or more.
    pub fn zoom(&mut self, _by: isize) {}

    /// Follows what happens, or stays.
    pub fn toggle_follow(&mut self, _events: &EventLog) {
        self.follows = !self.follows;
    }

    /// The number of the event that is selected.
    pub fn selected(&self) -> Option<u64> {
        self.selected
    }

    /// The process whose lane is selected.
    pub fn process(&self, events: &EventLog) -> Option<String> {
        Some(events.get(self.selected?)?.event.id.process.to_string())
    }
}

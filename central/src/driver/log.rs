//! What has happened in the session: the last of it kept, all of it told.

use std::collections::VecDeque;

use ddbx_protocol::RealTime;
use ddbx_protocol::control::{Notice, What};
use serde_json::Value;
use tokio::sync::broadcast;

use super::view::millis;

/// How many notices are kept; and as many events of the program, of which there can be so many
/// that nothing else would be left.
const KEPT_MAX: usize = 4 * 1024;

/// How many notices a listener may be behind. There can be ten thousand in a second, and on a
/// busy machine it can take a second until it is its turn.
const BEHIND_MAX: usize = 16 * 1024;

/// How much text a value may have to be kept.
const VALUE_BYTES_MAX: usize = 1024;

/// Of how many processes it is kept that a breakpoint was planted in them.
const PLACES_MAX: usize = 64;

fn is_short(value: &Value) -> bool {
    value.to_string().len() <= VALUE_BYTES_MAX
}

/// What has happened, and what happens then.
pub(crate) type Kept = (Vec<Notice>, broadcast::Receiver<Notice>);

pub(super) struct Log {
    kept: VecDeque<(u64, Notice)>,
    events: VecDeque<(u64, Notice)>,
    told: u64,
    forgotten: u64,
    tell: broadcast::Sender<Notice>,
}

impl Log {
    /// Listeners must not keep the session: they get a weak end.
    pub(super) fn new() -> (Self, broadcast::WeakSender<Notice>) {
        let (tell, _) = broadcast::channel(BEHIND_MAX);
        let weak = tell.downgrade();
        let (kept, events) = (VecDeque::new(), VecDeque::new());
        (Self { kept, events, told: 0, forgotten: 0, tell }, weak)
    }

    pub(super) fn tell(&mut self, now: RealTime, what: What) {
        let at_ms = millis(now.since(RealTime::default()));
        let mut notice = Notice { at_ms, what };
        let _ = self.tell.send(notice.clone());
        match &mut notice.what {
            What::Stands(hold) => {
                hold.args = hold.args.take().filter(is_short);
                hold.result = hold.result.take().filter(is_short);
            }
            What::BreakpointSet(view) | What::Changed(view) => view.processes.truncate(PLACES_MAX),
            _ => {}
        }
        let kept = match notice.what {
            What::Event(_) => &mut self.events,
            _ => &mut self.kept,
        };
        if kept.len() == KEPT_MAX {
            kept.pop_front();
            self.forgotten += 1;
        }
        self.told += 1;
        kept.push_back((self.told, notice));
    }

    /// How many are not kept any more.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The last of what has happened so far, and what happens from now on: nothing is in both.
    pub(super) fn kept(&self) -> Kept {
        let mut kept: Vec<&(u64, Notice)> = self.kept.iter().chain(&self.events).collect();
        kept.sort_unstable_by_key(|(nth, _)| *nth);
        let kept = kept.into_iter().map(|(_, notice)| notice.clone());
        (kept.collect(), self.tell.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{ControlId, Delay, Event, EventId, EventKind, EventNumber, ProcessName};

    use super::*;

    #[test]
    fn whoever_begins_to_listen_hears_everything_once() {
        let (mut log, _) = Log::new();
        let tell = |log: &mut Log, name: &str| {
            log.tell(RealTime::default(), What::Joined(name.to_owned()));
        };
        tell(&mut log, "before");
        let (kept, mut later) = log.kept();
        tell(&mut log, "after");
        let joined = |notice: Notice| match notice.what {
            What::Joined(name) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(kept.into_iter().map(joined).collect::<Vec<_>>(), ["before"]);
        assert_eq!(joined(later.try_recv().unwrap()), "after");
        assert!(later.try_recv().is_err());
    }

    #[test]
    fn events_of_the_program_leave_room_for_what_else_happened() {
        let (mut log, _) = Log::new();
        log.tell(RealTime::default(), What::Joined("before".to_owned()));
        let control = ControlId::new("p/main").unwrap();
        let event = |number| Event {
            id: EventId { process: ProcessName::new("p").unwrap(), number: EventNumber(number) },
            at: RealTime::default(),
            delay: Delay::ZERO,
            kind: EventKind::Ended { control: control.clone() },
        };
        for number in 0..2 * KEPT_MAX as u64 {
            log.tell(RealTime::default(), What::Event(event(number)));
        }
        log.tell(RealTime::default(), What::Left("after".to_owned()));
        let (kept, _) = log.kept();
        assert_eq!(kept.len(), KEPT_MAX + 2);
        assert_eq!(log.forgotten(), KEPT_MAX as u64);
        assert_eq!(kept[0].what, What::Joined("before".to_owned()));
        let events = kept[1..].iter().map(|notice| &notice.what).take(KEPT_MAX);
        assert!(
            events.eq((KEPT_MAX as u64..)
                .map(event)
                .map(What::Event)
                .take(KEPT_MAX)
                .collect::<Vec<_>>()
                .iter())
        );
        assert_eq!(kept[KEPT_MAX + 1].what, What::Left("after".to_owned()));
    }
}

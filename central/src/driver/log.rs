//! What has happened in the session: the last of it kept, all of it told.

use std::collections::VecDeque;

use ddbx_protocol::RealTime;
use ddbx_protocol::control::{Notice, What};
use serde_json::Value;
use tokio::sync::broadcast;

use super::view::millis;

/// How many notices are kept.
const KEPT_MAX: usize = 4 * 1024;

/// How many notices a listener may be behind. There can be ten thousand in a second, and on a
/// busy machine it can take a second until it is its turn.
const BEHIND_MAX: usize = 16 * 1024;

/// How much text a value may have to be kept.
const VALUE_BYTES_MAX: usize = 1024;

fn is_short(value: &Value) -> bool {
    value.to_string().len() <= VALUE_BYTES_MAX
}

/// What has happened, and what happens then.
pub(crate) type Kept = (Vec<Notice>, broadcast::Receiver<Notice>);

pub(super) struct Log {
    kept: VecDeque<Notice>,
    tell: broadcast::Sender<Notice>,
}

impl Log {
    /// Listeners must not keep the session: they get a weak end.
    pub(super) fn new() -> (Self, broadcast::WeakSender<Notice>) {
        let (tell, _) = broadcast::channel(BEHIND_MAX);
        let weak = tell.downgrade();
        (Self { kept: VecDeque::new(), tell }, weak)
    }

    pub(super) fn tell(&mut self, now: RealTime, what: What) {
        let at_ms = millis(now.since(RealTime::default()));
        let mut notice = Notice { at_ms, what };
        let _ = self.tell.send(notice.clone());
        if let What::Stands(hold) = &mut notice.what {
            hold.args = hold.args.take().filter(is_short);
            hold.result = hold.result.take().filter(is_short);
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(notice);
    }

    /// The last of what has happened so far, and what happens from now on: nothing is in both.
    pub(super) fn kept(&self) -> Kept {
        (self.kept.iter().cloned().collect(), self.tell.subscribe())
    }
}

#[cfg(test)]
mod tests {
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
}

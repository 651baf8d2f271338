//! Where central's messages come in.

use std::cmp::Reverse;
use std::sync::Weak;

use ddbx_protocol::control::CALLS_MAX;
use ddbx_protocol::{
    Attach, Breakpoint, ControlId, FromCentral, FromSatellite, InFlight, Names, Status, ToSatellite,
};

use super::{Core, Handle, Shared};
use crate::recorder::Recorder;

/// Takes messages for central. It is called while the satellite is locked, so it
/// must only hand them on.
pub type Send = Box<dyn Fn(FromSatellite) + std::marker::Send>;

/// Takes central's messages for a satellite, as long as there is one.
#[derive(Clone)]
pub struct Inbox(pub(super) Weak<Shared>);

impl Inbox {
    /// There is a way to central; central's welcome comes next. Returns what to say
    /// first; none if the satellite is gone.
    pub fn connected(&self, send: Send) -> Option<Attach> {
        let handle = self.handle()?;
        handle.lock().send = Some(send);
        Some(handle.attach())
    }

    /// Central says something: it holds when this returns.
    pub fn deliver(&self, message: FromCentral) {
        let Some(handle) = self.handle() else { return };
        match message {
            FromCentral::Welcome { name, start, mode } => handle.change(|core| {
                handle.set_name(name);
                core.start = start;
                core.satellite.handle_mode(mode);
                core.satellite.handle_attached(handle.now());
                for &to in &core.callees {
                    core.satellite.handle_connected(to);
                }
                for &from in &core.callers {
                    core.satellite.handle_accepted(from);
                }
            }),
            FromCentral::Says(message) => {
                if let ToSatellite::Plant(Breakpoint { id, .. }) | ToSatellite::Remove(id) =
                    &message
                {
                    handle.0.conditions.forget(*id);
                }
                handle.change(|core| core.satellite.handle_central(handle.now(), message));
            }
            FromCentral::Calls { query, of } => {
                let calls = oldest(handle.0.report.calls(), of.as_ref());
                if let Some(send) = &handle.lock().send {
                    send(FromSatellite::Calls { query, calls });
                }
            }
            FromCentral::Settle { query } => handle.settled(query),
            FromCentral::Finish { query } => match handle.recorder() {
                Some(recorder) => {
                    let inbox = self.clone();
                    recorder.finish(move || {
                        if let Some(handle) = inbox.handle() {
                            handle.settled(query);
                        }
                    });
                }
                None => handle.settled(query),
            },
            FromCentral::GoOn { query } => {
                handle.recorder().into_iter().for_each(Recorder::goes_on);
                handle.settled(query);
            }
            FromCentral::Observe(observed) => {
                handle.0.events.observe(observed);
                handle.open(&handle.lock());
                let _ = handle.0.wake.send(());
            }
            FromCentral::Ready | FromCentral::Heartbeat => {}
        }
    }

    /// Central is gone.
    pub fn lost(&self) {
        let Some(handle) = self.handle() else { return };
        handle.0.events.observe(false);
        handle.recorder().into_iter().for_each(Recorder::goes_on);
        handle.change(|core| {
            core.satellite.handle_lost(handle.now());
            core.send = None;
        });
    }

    /// Whether the way to central is busy. As long as it is, no events are put before it:
    /// people can do without, and what is about holds must not wait behind them.
    pub fn is_sending(&self, is_sending: bool) {
        if let Some(handle) = self.handle() {
            handle.0.events.block(is_sending);
        }
    }

    /// How the process is doing; none if the satellite is gone.
    pub fn status(&self) -> Option<Status> {
        let handle = self.handle()?;
        let mut status = handle.0.report.status();
        status.recorded = handle.recorded_so_far();
        let core = handle.lock();
        status.dropped.events = handle.0.events.dropped();
        status.dropped.peers += core.peers_dropped;
        status.breakpoints = handle.0.conditions.counts(core.satellite.breakpoints().met());
        Some(status)
    }

    /// The names that were met in the process, if they are more than `known`.
    pub fn names(&self, known: usize) -> Option<Names> {
        self.handle()?.0.report.names(known)
    }

    /// Whether the satellite is still there.
    pub fn is_needed(&self) -> bool {
        self.0.strong_count() > 0
    }

    fn handle(&self) -> Option<Handle> {
        self.0.upgrade().map(Handle)
    }
}

/// How much text the calls of one answer may have: they must fit into a message.
const CALLS_BYTES_MAX: usize = 512 * 1024;

/// As many calls as can be told, all of them or those of one control, the oldest first.
fn oldest(mut calls: Vec<InFlight>, of: Option<&ControlId>) -> Vec<InFlight> {
    calls.retain(|call| of.is_none_or(|control| call.control == *control));
    calls.sort_by_key(|call| Reverse(call.age));
    let mut bytes = 0;
    let fits = |call: &InFlight| {
        bytes += size_of::<InFlight>() + call.control.as_str().len() + call.method.as_str().len();
        bytes <= CALLS_BYTES_MAX
    };
    calls.into_iter().take(CALLS_MAX).take_while(fits).collect()
}

impl Handle {
    fn settled(&self, query: u64) {
        if let Some(send) = &self.lock().send {
            send(FromSatellite::Settled { query });
        }
    }

    fn change(&self, what: impl FnOnce(&mut Core)) {
        let mut core = self.lock();
        what(&mut core);
        self.drain(&mut core);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ddbx_protocol::{Delay, MethodName, RealTime};

    use super::*;

    #[test]
    fn an_answer_has_the_oldest_calls_that_fit() {
        let call = |control: &str, age: u64| InFlight {
            control: ControlId::new(control).unwrap(),
            method: MethodName::new("Walker.walk").unwrap(),
            depth: 1,
            age: Duration::from_millis(age),
            delay: Delay::ZERO,
            due: RealTime::default() - Delay::ZERO,
            now: RealTime::default(),
        };
        let ages =
            |calls: &[InFlight]| calls.iter().map(|call| call.age.as_millis()).collect::<Vec<_>>();
        let few = vec![call("p/a", 1), call("p/b", 3), call("p/a", 2)];
        assert_eq!(ages(&oldest(few.clone(), None)), [3, 2, 1]);
        assert_eq!(ages(&oldest(few, ControlId::new("p/a").ok().as_ref())), [2, 1]);

        let many = (0..CALLS_MAX as u64 * 2).map(|age| call("p/a", age)).collect();
        assert_eq!(oldest(many, None).len(), CALLS_MAX);
        let long = format!("p/{}", "x".repeat(4_000));
        let long = oldest((0..1_000).map(|age| call(&long, age)).collect(), None);
        assert!((100..200).contains(&long.len()), "{}", long.len());
        assert_eq!(long[0].age.as_millis(), 999);
    }
}

//! Who takes part: processes join, say something, and leave.

use ddbx_protocol::control::What;
use ddbx_protocol::{
    Attach, Delay, Event, FromCentral, FromSatellite, HoldId, Names, ProcessIndex, ProcessKey,
    ProcessName, RealTime, Status, StopId, StopReason, ToCentral,
};

use super::{Deliver, Driver, Hit, Membership, view};
use crate::logic::Command;

/// A process that takes part.
pub(super) struct Member {
    pub(super) epoch: u64,
    key: ProcessKey,
    pub(super) name: ProcessName,
    pub(super) start: u32,
    pub(super) pid: u32,
    pub(super) deliver: Deliver,
    pub(super) status: Status,
    pub(super) names: Names,
}

/// How many that have left are shown.
const DEPARTED_MAX: usize = 64;

/// Of how many names it is known how often they were started, and how far those starts came
/// in a replay.
const STARTS_MAX: usize = 16 * 1024;

impl Driver {
    /// None if somebody else takes part under this number.
    pub(super) fn join(&mut self, attach: Attach, deliver: Deliver) -> Option<Membership> {
        let Attach { process, name, own_name, pid, key } = attach;
        let now = self.now();
        match self.members.get(&process) {
            None => {}
            // The same one again: its old connection counts no more.
            Some(old) if old.key == key => self.leave(Membership { process, epoch: old.epoch }),
            Some(_) => return None,
        }
        let name =
            self.free_name(own_name.filter(|_| self.is_taken(&name)).as_ref().unwrap_or(&name));
        self.departed.remove(name.as_str());
        self.epochs += 1;
        let epoch = self.epochs;
        let start = self.start_number(&name, process);
        deliver(FromCentral::Welcome { name: name.clone(), start, mode: self.mode });
        if self.observers > 0 {
            deliver(FromCentral::Observe(true));
        }
        self.central.handle_joined(now, process, &[], Delay::ZERO);
        for breakpoint in self.asked.concerning(name.as_str()) {
            self.central.handle_user(Command::Plant(process, breakpoint));
        }
        self.log.tell(now, What::Joined(name.to_string()));
        self.members.insert(
            process,
            Member {
                epoch,
                key,
                name,
                start,
                pid,
                deliver,
                status: Status::default(),
                names: Names::default(),
            },
        );
        self.deliver();
        if let Some(member) = self.members.get(&process) {
            (member.deliver)(FromCentral::Ready);
        }
        Some(Membership { process, epoch })
    }

    /// How many processes of this name have come so far, this one included.
    fn start_number(&mut self, name: &ProcessName, process: ProcessIndex) -> u32 {
        if self.starts.len() >= STARTS_MAX && !self.starts.contains_key(name) {
            // One that is not here: if it comes again, it is counted anew.
            let is_here = |name: &ProcessName| self.is_taken(name);
            let gone = self.starts.keys().find(|name| !is_here(name)).cloned();
            gone.into_iter().for_each(|name| _ = self.starts.remove(&name));
        }
        let (start, last) = self.starts.entry(name.clone()).or_insert((0, None));
        if last.replace(process) != Some(process) {
            *start += 1;
        }
        *start
    }

    pub(super) fn leave(&mut self, membership: Membership) {
        let Membership { process, epoch } = membership;
        if self.members.get(&process).is_none_or(|member| member.epoch != epoch) {
            return;
        }
        let now = self.now();
        if let Some(member) = self.members.remove(&process) {
            self.left += 1;
            self.asked.leave(process);
            if self.departed.len() < DEPARTED_MAX {
                self.departed.insert(member.name.to_string(), member.pid);
            }
            for (hold, since) in self.holds.end_all_in(process) {
                self.tell_goes_on(now, hold, member.name.to_string(), since);
            }
            self.log.tell(now, What::Left(member.name.to_string()));
        }
        self.central.handle_left(now, process);
    }

    pub(super) fn hear(&mut self, from: Membership, message: FromSatellite) {
        let process = from.process;
        let Some(member) = self.members.get_mut(&process) else { return };
        if member.epoch != from.epoch {
            return;
        }
        match message {
            FromSatellite::Attach(_) => {}
            FromSatellite::Says(message) => self.hear_of_stops(process, message),
            FromSatellite::Stands { number, standing } => {
                self.holds.describe(StopId { process, number }, standing);
            }
            FromSatellite::Status(status) => {
                self.asked.count(process, &status.breakpoints);
                member.status = status;
            }
            FromSatellite::Names(names) => member.names = names,
            FromSatellite::Calls { query, calls } => {
                if let Some(reply) = self.queries.remove(&(process, query)) {
                    let _ = reply.send(calls);
                }
            }
            FromSatellite::Events { mut events, dropped } => {
                // Whatever it says: what it tells has happened there.
                for event in events.iter_mut().filter(|event| event.id.process != member.name) {
                    event.id.process = member.name.clone();
                }
                self.tell_events(events, dropped);
            }
            FromSatellite::Replays(progress) => {
                let start = (member.name.clone(), member.start);
                if self.replays.len() < STARTS_MAX || self.replays.contains_key(&start) {
                    self.replays.insert(start, *progress);
                }
            }
            FromSatellite::Settled { query } => {
                drop(self.queries.remove(&(process, query)));
            }
        }
    }

    pub(super) fn hear_of_stops(&mut self, process: ProcessIndex, message: ToCentral) {
        let now = self.now();
        if let ToCentral::Stopped { number, .. } | ToCentral::Ask { number, .. } = &message {
            let stop = StopId { process, number: *number };
            if !self.central.has_room_for(stop) {
                return self.let_pass(stop, &message);
            }
        }
        match &message {
            ToCentral::Stopped { number, reason, stack, .. } if *reason != StopReason::Inside => {
                let stop = StopId { process, number: *number };
                self.holds.begin(now, stop, *reason, stack.clone());
                if let Some(view) = self.view_hold(stop, false) {
                    self.log.tell(now, What::Stands(view));
                }
                let reason = *reason;
                self.central.handle_satellite(now, process, message);
                if let StopReason::Breakpoint(breakpoint) = reason {
                    self.hit(now, Hit { breakpoint, stop });
                } else if let Some(breakpoint) = self.holds.awaited(stop) {
                    // To whoever looks it stands there already.
                    self.tell_hit(Hit { breakpoint, stop });
                }
                return;
            }
            ToCentral::Gone { number, .. } => {
                if let Some((hold, since)) = self.holds.end(StopId { process, number: *number }) {
                    self.tell_goes_on(now, hold, self.name(process), since);
                }
            }
            _ => {}
        }
        self.central.handle_satellite(now, process, message);
    }

    /// Too many stand still: this one goes on whatever the rule says. The program comes first.
    fn let_pass(&mut self, stop: StopId, message: &ToCentral) {
        self.stops_dropped += 1;
        let waits_inside = matches!(message, ToCentral::Stopped { reason: StopReason::Inside, .. });
        if !waits_inside {
            self.central.handle_user(Command::Pass(stop));
        }
    }

    pub(super) fn hit(&mut self, now: RealTime, hit: Hit) {
        let Some(wanted) = self.asked.hit(hit) else {
            // It was removed or disabled, or had stopped its one control, while this one
            // came to it: nobody waits for it.
            self.central.handle_user(Command::Continue(hit.stop));
            return;
        };
        if let Some(length) = wanted.hold_for {
            self.holds.expire(hit.stop, now + length);
        }
        if wanted.once {
            self.central.handle_user(Command::Remove(hit.breakpoint));
        }
        self.tell_hit(hit);
    }

    pub(super) fn tell_hit(&mut self, hit: Hit) {
        if self.holds.is_news(hit) {
            self.asked.tell(hit);
        }
    }

    pub(super) fn tell_goes_on(
        &mut self,
        now: RealTime,
        hold: HoldId,
        process: String,
        since: RealTime,
    ) {
        let held_ms = view::millis(now.since(since));
        self.log.tell(now, What::GoesOn { hold, process, held_ms });
    }

    pub(super) fn tell_events(&mut self, events: Vec<Event>, dropped: u64) {
        let now = self.now();
        for event in events {
            self.log.tell(now, What::Event(event));
        }
        if dropped > 0 {
            self.log.tell(now, What::Missed(dropped));
        }
    }

    pub(super) fn name(&self, process: ProcessIndex) -> String {
        let member = self.members.get(&process);
        member.map_or_else(|| "(gone)".to_owned(), |member| member.name.to_string())
    }

    /// `inventory`, or `inventory#2` if there is one already.
    fn is_taken(&self, name: &ProcessName) -> bool {
        self.members.values().any(|other| other.name == *name)
    }

    pub(super) fn free_name(&self, name: &ProcessName) -> ProcessName {
        let family = name.as_str().split('#').next().unwrap_or_default().to_owned();
        let numbered = (2u32..).map(|number| ProcessName::new(format!("{family}#{number}")));
        let mut names = std::iter::once(Ok(name.clone())).chain(numbered);
        // One that gets too long with its number keeps what it has.
        names
            .find_map(|n| n.map_or(Some(name.clone()), |n| (!self.is_taken(&n)).then_some(n)))
            .unwrap_or_else(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use ddbx_protocol::control::{Reply, Request, SessionView};
    use ddbx_protocol::{Count, Stack, ToSatellite};

    use super::*;

    fn driver() -> Driver {
        Driver::new(ddbx_protocol::Mode::Permit).0
    }

    fn attach(driver: &mut Driver, index: u64, name: &str, deliver: Deliver) -> Membership {
        let (process, name) = (ProcessIndex(index), ProcessName::new(name).unwrap());
        let key = ProcessKey::random().unwrap();
        driver.join(Attach { process, name, own_name: None, pid: 1, key }, deliver).unwrap()
    }

    fn view(driver: &mut Driver) -> SessionView {
        match driver.answer(Request::Session) {
            Reply::Session(view) => view,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn processes_that_come_and_go_leave_little_behind() {
        let mut driver = driver();
        let wanted =
            ddbx_protocol::control::Wanted { spec: "*:*@arrive".to_owned(), ..Default::default() };
        let breakpoint = driver.set(super::super::CheckedWish::new(wanted).unwrap(), None).unwrap();
        let number = 2 * STARTS_MAX as u64;
        for index in 0..number {
            let member = attach(&mut driver, index, &format!("worker-{index}"), Box::new(|_| ()));
            let says = |message| FromSatellite::Says(message);
            driver.hear(member, says(ToCentral::Connected { to: ProcessIndex(index + 1) }));
            let count = Count { breakpoint: breakpoint.id, met: 1, errors: 1, error: None };
            let status = Status { breakpoints: vec![count], ..Status::default() };
            driver.hear(member, FromSatellite::Status(status));
            driver.leave(member);
            driver.deliver();
        }
        assert_eq!(driver.starts.len(), STARTS_MAX);
        assert_eq!(driver.departed.len(), DEPARTED_MAX);
        let seen = driver.view_breakpoint(breakpoint.id);
        assert_eq!((seen.met, seen.errors), (number, number), "what they counted is kept");
        let view = view(&mut driver);
        assert_eq!((view.left, view.processes), (number, 0));
        assert!(view.dropped.processes > number / 2, "{view:?}");
        assert!(view.dropped.notices > 0, "{view:?}");
    }

    #[test]
    fn whoever_there_is_no_room_for_is_let_go() {
        let mut driver = driver();
        driver.central.limit_stops(3);
        let (tell, told) = channel();
        let deliver = Box::new(move |message| drop(tell.send(message)));
        let member = attach(&mut driver, 1, "p", deliver);
        for number in 1..=5 {
            let sent = driver.now();
            let stopped = ToCentral::Stopped {
                number,
                reason: if number == 5 { StopReason::Inside } else { StopReason::Process },
                stack: Stack::home(ProcessIndex(1)),
                clock: sent - Delay::ZERO,
                sent,
            };
            driver.hear(member, FromSatellite::Says(stopped));
        }
        driver.deliver();
        let passed: Vec<u64> = told
            .try_iter()
            .filter_map(|message| match message {
                FromCentral::Says(ToSatellite::Pass { number }) => Some(number),
                _ => None,
            })
            .collect();
        assert_eq!(passed, [4], "whoever waits inside the program is not held");
        let view = view(&mut driver);
        assert_eq!((view.held, view.dropped.stops), (3, 2));
        assert!(!view.order_guaranteed, "and that is said");
    }
}

//! Entries to bytes.

use std::mem;

use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ConnectionId, ControlId, Delay, End, EventId, EventKind,
    EventNumber, MethodName, PointLabel, ProcessName, RealTime, Shared,
};

use super::begun::Begun;
use super::peers::Peers;
use super::{BODY_BYTES_FULL, DELAY, JUMP, Memory, NEXT_CALL, OTHER_CALL, PAYLOAD, kind, slot};
use crate::entry::{Entry, Moment, Why};
use crate::format::names::Defined;
use crate::format::varint::Out;
use crate::format::{BlockKind, encode_block, varint};

mod notes;

/// The writer's side: one open block.
#[derive(Debug, Default)]
pub struct Encoder {
    body: Vec<u8>,
    first: EventNumber,
    goes_on: bool,
    memory: Memory,
    processes: Defined<ProcessName>,
    controls: Defined<ControlId>,
    methods: Defined<MethodName>,
    labels: Defined<PointLabel>,
    choices: Defined<ChoiceName>,
    /// Those of the controls that notes do not name.
    begun: Begun,
    /// The processes that notes do not name.
    peers: Peers,
    /// The method of the last note that had one, with its number.
    last_method: Option<(&'static MethodName, usize)>,
}

impl Encoder {
    /// Adds an entry to the open block.
    pub fn push(&mut self, entry: &Entry) {
        self.begin_entry(match entry {
            Entry::Event(moment) => Some(moment.number),
            Entry::Choice(_) | Entry::Gap(_) => None,
        });
        match entry {
            Entry::Event(moment) => self.event(moment),
            Entry::Choice(choice) => {
                let tag_at = self.body.len();
                self.body.push(kind::CHOICE);
                self.body[tag_at] |= self.frame(&choice.control, choice.call.as_ref());
                self.choices.put(&mut self.body, &choice.name, 0);
                let value = choice.value.as_bytes();
                varint::put(&mut self.body, value.len() as u64);
                self.body.extend(value);
            }
            Entry::Gap(gap) => {
                let why = match gap.why {
                    Why::QueueFull => 0,
                    Why::DiskFull => 1,
                    Why::DiskError => 2,
                };
                self.body.extend([kind::GAP, why]);
                varint::put(&mut self.body, gap.missing);
            }
        }
    }

    /// How long the body of the open block is.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Whether the open block must be closed before the next entry.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.body.len() >= BODY_BYTES_FULL || self.names_are_full()
    }

    /// Closes the block, which begins at byte `at` of its file, and appends it.
    /// Nothing happens if there is nothing in it.
    pub fn close_block(&mut self, at: u64, out: &mut Vec<u8>) {
        if self.body.is_empty() {
            return;
        }
        let kind = if self.goes_on { BlockKind::More } else { BlockKind::Fresh };
        encode_block(at, kind, self.first, &self.body, out);
        self.body.clear();
        self.goes_on = true;
        if self.names_are_full() {
            self.restart();
        }
    }

    /// The next block, which is still empty, shall refer to nothing before it.
    pub fn restart(&mut self) {
        debug_assert!(self.body.is_empty());
        self.goes_on = false;
        self.memory.clear();
        self.processes.clear();
        self.controls.clear();
        self.methods.clear();
        self.labels.clear();
        self.choices.clear();
        self.begun.clear();
        self.peers.forget_numbers();
        self.last_method = None;
    }

    /// The number that the next event has, if none is missing.
    pub fn next(&self) -> EventNumber {
        EventNumber(self.memory.number.wrapping_add(1))
    }

    #[inline]
    fn names_are_full(&self) -> bool {
        // All at once: this is asked after every event, and hardly ever so.
        self.processes.is_full()
            | self.controls.is_full()
            | self.methods.is_full()
            | self.labels.is_full()
            | self.choices.is_full()
    }

    /// An entry is about to be added: an event with this number, or something else.
    #[inline]
    fn begin_entry(&mut self, number: Option<EventNumber>) {
        if self.body.is_empty() {
            self.first = number.unwrap_or_else(|| self.next());
            self.memory.number = self.first.0.wrapping_sub(1);
        }
    }

    /// Puts what every event has. Returns its tag, as far as it is known.
    #[inline(always)]
    fn begin_event(
        &mut self,
        out: &mut impl Out,
        kind: u8,
        number: EventNumber,
        at: RealTime,
        delay: Delay,
    ) -> u8 {
        let mut tag = kind;
        out.byte(tag);
        let (number, at, delay) = (number.0, at.as_nanos() as u64, delay.as_nanos());
        if number != self.memory.number.wrapping_add(1) {
            tag |= JUMP;
            varint::put_difference(out, self.memory.number, number);
        }
        varint::put_difference(out, self.memory.at, at);
        if delay != self.memory.delay {
            tag |= DELAY;
            varint::put_difference(out, self.memory.delay, delay);
        }
        (self.memory.number, self.memory.at, self.memory.delay) = (number, at, delay);
        tag
    }

    fn event(&mut self, moment: &Moment) {
        let Moment { number, at, delay, kind, payload } = moment;
        let mut body = mem::take(&mut self.body);
        let tag_at = body.len();
        let mut tag = self.begin_event(&mut body, tag_of(kind), *number, *at, *delay);
        self.body = body;
        match kind {
            EventKind::CallSent { call, method, content } => {
                tag |= self.call(call);
                self.methods.put(&mut self.body, method, 0);
                self.body.extend(content.to_le_bytes());
            }
            EventKind::CallArrived { call, method, sent_as } => {
                tag |= self.call(call);
                self.methods.put(&mut self.body, method, 0);
                self.departure(sent_as.as_ref());
            }
            EventKind::ReturnSent { call } => tag |= self.call(call),
            EventKind::ReturnArrived { call, sent_as } => {
                tag |= self.call(call);
                self.departure(sent_as.as_ref());
            }
            EventKind::DeadlineExpired { call, end } | EventKind::Cancelled { call, end } => {
                tag |= self.call(call);
                self.body.push(match end {
                    End::Caller => 0,
                    End::Callee => 1,
                });
            }
            EventKind::Spawned { control, by } => {
                self.control(control, 0);
                self.perhaps(by.as_ref());
            }
            EventKind::Ended { control } => {
                self.control(control, 0);
            }
            EventKind::Point { control, call, label } => {
                tag |= self.frame(control, call.as_ref());
                self.labels.put(&mut self.body, label, 0);
            }
            EventKind::Connected { connection } | EventKind::Closed { connection } => {
                self.connection(connection);
            }
            EventKind::Accepted { connection, sent_as } => {
                self.connection(connection);
                self.departure(Some(sent_as));
            }
            EventKind::Fired { control, call, timer } => {
                tag |= self.frame(control, call.as_ref());
                varint::put(&mut self.body, *timer);
            }
            EventKind::Entered { control, call, nth, what, from } => {
                tag |= self.frame(control, call.as_ref());
                self.body.push(match what {
                    Shared::Lock => 0,
                    Shared::Read => 1,
                    Shared::Write => 2,
                    Shared::Permit => 3,
                    Shared::Notice => 4,
                    Shared::Message => 5,
                });
                varint::put(&mut self.body, *nth);
                self.perhaps(from.as_ref());
            }
        }
        self.body[tag_at] = tag;
        if let Some(payload) = payload {
            self.body.push(PAYLOAD);
            varint::put(&mut self.body, payload.bytes());
            varint::put(&mut self.body, payload.text().len() as u64);
            self.body.extend(payload.text().as_bytes());
        }
    }

    /// Returns what the tag says about it.
    fn call(&mut self, call: &CallId) -> u8 {
        self.frame(&call.control, Some(&call.path))
    }

    /// A control, and the call that it handles, or makes. Returns what the tag says.
    fn frame(&mut self, control: &ControlId, call: Option<&CallPath>) -> u8 {
        let control = self.control(control, 0);
        let path = call.map_or(&[][..], CallPath::numbers);
        self.usual_path(control, path).unwrap_or_else(|| self.path(control, path))
    }

    /// A control by its name, which it may also have been given by what it has begun with.
    /// Returns its number.
    fn control(&mut self, control: &ControlId, reserved: u64) -> usize {
        let Self { body, controls, begun, peers, .. } = self;
        if let Some(number) = controls.find(control) {
            return controls.put_again(body, number, reserved);
        }
        let begun = begun
            .named(control.as_str(), |beginning, home| peers.name(beginning.home).as_str() == home);
        match begun {
            Some(number) => {
                controls.is_defined(control, number);
                controls.put_again(body, number, reserved)
            }
            None => controls.define(body, control, reserved),
        }
    }

    /// Which call of the control with this number it is, if that is the last or the next one,
    /// and where most are made: what the tag says.
    #[inline]
    fn usual_path(&mut self, control: usize, path: &[u32]) -> Option<u8> {
        let last = slot(&mut self.memory.calls, control);
        match (path, &mut last[..]) {
            ([number], [last]) if number == last => Some(0),
            ([number], [last]) if *number == last.wrapping_add(1) => {
                *last = *number;
                Some(NEXT_CALL)
            }
            _ => None,
        }
    }

    /// The same of any call.
    fn path(&mut self, control: usize, path: &[u32]) -> u8 {
        let last = slot(&mut self.memory.calls, control);
        let same = path.iter().zip(last.iter()).take_while(|(a, b)| a == b).count();
        let (rest, before) = (&path[same..], &last[same..]);
        let tag = match (rest, before) {
            ([], []) => return 0,
            ([number], [one_less]) if *number == one_less.wrapping_add(1) => NEXT_CALL,
            _ => {
                varint::put(&mut self.body, same as u64);
                varint::put(&mut self.body, rest.len() as u64);
                rest.iter().for_each(|number| varint::put(&mut self.body, u64::from(*number)));
                OTHER_CALL
            }
        };
        last.truncate(same);
        last.extend_from_slice(rest);
        tag
    }

    fn perhaps(&mut self, control: Option<&ControlId>) {
        match control {
            Some(control) => _ = self.control(control, 1),
            None => self.body.push(0),
        }
    }

    fn departure(&mut self, sent_as: Option<&EventId>) {
        let Some(sent_as) = sent_as else { return self.body.push(0) };
        let process = self.processes.put(&mut self.body, &sent_as.process, 1);
        let last = slot(&mut self.memory.departures, process);
        varint::put_difference(&mut self.body, *last, sent_as.number.0);
        *last = sent_as.number.0;
    }

    fn connection(&mut self, connection: &ConnectionId) {
        self.processes.put(&mut self.body, &connection.client, 0);
        varint::put(&mut self.body, u64::from(connection.nth));
    }
}

fn tag_of(event: &EventKind) -> u8 {
    match event {
        EventKind::CallSent { .. } => kind::CALL_SENT,
        EventKind::CallArrived { .. } => kind::CALL_ARRIVED,
        EventKind::ReturnSent { .. } => kind::RETURN_SENT,
        EventKind::ReturnArrived { .. } => kind::RETURN_ARRIVED,
        EventKind::DeadlineExpired { .. } => kind::DEADLINE_EXPIRED,
        EventKind::Cancelled { .. } => kind::CANCELLED,
        EventKind::Spawned { .. } => kind::SPAWNED,
        EventKind::Ended { .. } => kind::ENDED,
        EventKind::Point { .. } => kind::POINT,
        EventKind::Connected { .. } => kind::CONNECTED,
        EventKind::Accepted { .. } => kind::ACCEPTED,
        EventKind::Closed { .. } => kind::CLOSED,
        EventKind::Fired { .. } => kind::FIRED,
        EventKind::Entered { .. } => kind::ENTERED,
    }
}

//! Bytes to entries.

use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ConnectionId, ControlId, Delay, End, EventId, EventKind,
    EventNumber, MethodName, PointLabel, ProcessName, RealTime, Shared,
};

use super::{BEGUN, DELAY, JUMP, Memory, NEXT_CALL, OTHER_CALL, PAYLOAD, kind, slot};
use crate::entry::{Choice, ChoiceValue, Entry, Gap, Moment, Payload, Why};
use crate::format::names::Met;
use crate::format::varint::Input;
use crate::format::{BlockKind, FormatError};

/// The reader's side: the entries of block after block.
#[derive(Debug, Default)]
pub struct Decoder {
    memory: Memory,
    processes: Met<ProcessName>,
    controls: Met<ControlId>,
    methods: Met<MethodName>,
    labels: Met<PointLabel>,
    choices: Met<ChoiceName>,
}

impl Decoder {
    /// A block begins.
    pub fn begin(&mut self, kind: BlockKind, first: EventNumber) {
        if kind == BlockKind::Fresh {
            *self = Self::default();
        }
        self.memory.number = first.0.wrapping_sub(1);
    }

    /// The first entry in what is left of the body, and how long it is.
    pub fn next(&mut self, body: &[u8]) -> Result<(Entry, usize), FormatError> {
        let mut input = Input(body);
        let entry = self.entry(&mut input)?;
        Ok((entry, body.len() - input.0.len()))
    }

    fn entry(&mut self, input: &mut Input<'_>) -> Result<Entry, FormatError> {
        let tag = input.byte()?;
        Ok(match tag & 0x0f {
            // These have neither number nor delay.
            kind::CHOICE | kind::GAP if tag & (JUMP | DELAY) != 0 => {
                return Err(FormatError::Content);
            }
            kind::GAP if tag != kind::GAP => return Err(FormatError::Content),
            kind::CHOICE => {
                let (control, call) = self.frame(tag, input)?;
                let name = named(self.choices.get(input, 0)?)?.1.clone();
                let len = input.count(ChoiceValue::BYTES_MAX)?;
                let value = ChoiceValue::new(input.bytes(len)?);
                let value = value.map_err(|_| FormatError::Content)?;
                Entry::Choice(Choice { control, call, name, value })
            }
            kind::GAP => {
                let why = match input.byte()? {
                    0 => Why::QueueFull,
                    1 => Why::DiskFull,
                    2 => Why::DiskError,
                    _ => return Err(FormatError::Content),
                };
                Entry::Gap(Gap { missing: input.number()?, why })
            }
            _ => {
                let moment = self.event(tag, input)?;
                Entry::Event(Moment { payload: payload(input)?, ..moment })
            }
        })
    }

    fn event(&mut self, tag: u8, input: &mut Input<'_>) -> Result<Moment, FormatError> {
        self.memory.number = match tag & JUMP {
            0 => self.memory.number.wrapping_add(1),
            _ => input.difference(self.memory.number)?,
        };
        self.memory.at = input.difference(self.memory.at)?;
        if tag & DELAY != 0 {
            self.memory.delay = input.difference(self.memory.delay)?;
        }
        let kind = match tag & 0x0f {
            kind::CALL_SENT => {
                let (call, method) = (self.call(tag, input)?, self.method(input)?);
                let content = u16::from_le_bytes([input.byte()?, input.byte()?]);
                EventKind::CallSent { call, method, content }
            }
            kind::CALL_ARRIVED => {
                let (call, method) = (self.call(tag, input)?, self.method(input)?);
                EventKind::CallArrived { call, method, sent_as: self.departure(input)? }
            }
            kind::RETURN_SENT => EventKind::ReturnSent { call: self.call(tag, input)? },
            kind::RETURN_ARRIVED => {
                let call = self.call(tag, input)?;
                EventKind::ReturnArrived { call, sent_as: self.departure(input)? }
            }
            kind::DEADLINE_EXPIRED => {
                EventKind::DeadlineExpired { call: self.call(tag, input)?, end: end(input)? }
            }
            kind::CANCELLED => {
                EventKind::Cancelled { call: self.call(tag, input)?, end: end(input)? }
            }
            kind::POINT => {
                let (control, call) = self.frame(tag, input)?;
                let label = named(self.labels.get(input, 0)?)?.1.clone();
                EventKind::Point { control, call, label }
            }
            kind::FIRED => {
                let (control, call) = self.frame(tag, input)?;
                EventKind::Fired { control, call, timer: input.number()? }
            }
            kind::ENTERED => {
                let (control, call) = self.frame(tag, input)?;
                let what = match input.byte()? {
                    0 => Shared::Lock,
                    1 => Shared::Read,
                    2 => Shared::Write,
                    3 => Shared::Permit,
                    4 => Shared::Notice,
                    5 => Shared::Message,
                    _ => return Err(FormatError::Content),
                };
                let nth = input.number()?;
                EventKind::Entered { control, call, nth, what, from: self.perhaps(input)? }
            }
            // The rest is not about calls.
            _ if tag & (NEXT_CALL | OTHER_CALL) != 0 => return Err(FormatError::Content),
            kind::SPAWNED => {
                EventKind::Spawned { control: self.control(input)?, by: self.perhaps(input)? }
            }
            kind::ENDED => EventKind::Ended { control: self.control(input)? },
            kind::CONNECTED => EventKind::Connected { connection: self.connection(input)? },
            kind::ACCEPTED => {
                let connection = self.connection(input)?;
                let sent_as = named(self.departure(input)?)?;
                EventKind::Accepted { connection, sent_as }
            }
            kind::CLOSED => EventKind::Closed { connection: self.connection(input)? },
            _ => return Err(FormatError::Content),
        };
        Ok(Moment {
            number: EventNumber(self.memory.number),
            at: RealTime::from_nanos(self.memory.at as i64),
            delay: Delay::from_nanos(self.memory.delay),
            kind,
            payload: None,
        })
    }

    fn call(&mut self, tag: u8, input: &mut Input<'_>) -> Result<CallId, FormatError> {
        let (control, path) = self.frame(tag, input)?;
        Ok(CallId { control, path: named(path)? })
    }

    /// A control, and the call that it handles, or makes.
    fn frame(
        &mut self,
        tag: u8,
        input: &mut Input<'_>,
    ) -> Result<(ControlId, Option<CallPath>), FormatError> {
        let (number, control) = named(self.control_at(input, 0)?)?;
        let last = slot(&mut self.memory.calls, number);
        match (tag & (NEXT_CALL | OTHER_CALL), last.last_mut()) {
            (0, _) => {}
            (NEXT_CALL, Some(number)) => *number = number.wrapping_add(1),
            (OTHER_CALL, _) => {
                let same = input.count(last.len())?;
                last.truncate(same);
                for _ in 0..input.count(CallPath::DEPTH_MAX - same)? {
                    let number = u32::try_from(input.number()?);
                    last.push(number.map_err(|_| FormatError::Content)?);
                }
            }
            _ => return Err(FormatError::Content),
        }
        Ok((control, CallPath::new(last)))
    }

    /// A control, which may be defined by what it has begun with.
    fn control_at(
        &mut self,
        input: &mut Input<'_>,
        reserved: u64,
    ) -> Result<Option<(usize, ControlId)>, FormatError> {
        let Self { memory, processes, controls, methods, .. } = self;
        let mut is_made = false;
        let found = controls.get_or_make(input, reserved, |input| {
            is_made = true;
            let home = named(processes.get(input, 0)?)?.1;
            let method = named(methods.get(input, 0)?)?.1;
            let hash = u64::from_le_bytes(input.array()?);
            let nth = u32::try_from(input.number()?).map_err(|_| FormatError::Content)?;
            Ok(ControlId::of_call(home, method, hash, nth))
        })?;
        let Some((number, control)) = found else { return Ok(None) };
        if is_made {
            slot(&mut memory.calls, number).extend_from_slice(&BEGUN);
        }
        Ok(Some((number, control.clone())))
    }

    fn perhaps(&mut self, input: &mut Input<'_>) -> Result<Option<ControlId>, FormatError> {
        Ok(self.control_at(input, 1)?.map(|(_, control)| control))
    }

    fn departure(&mut self, input: &mut Input<'_>) -> Result<Option<EventId>, FormatError> {
        let Some((number, process)) = self.processes.get(input, 1)? else {
            return Ok(None);
        };
        let last = slot(&mut self.memory.departures, number);
        *last = input.difference(*last)?;
        Ok(Some(EventId { process: process.clone(), number: EventNumber(*last) }))
    }

    fn connection(&mut self, input: &mut Input<'_>) -> Result<ConnectionId, FormatError> {
        let client = named(self.processes.get(input, 0)?)?.1.clone();
        let nth = u32::try_from(input.number()?).map_err(|_| FormatError::Content)?;
        Ok(ConnectionId { client, nth })
    }

    fn control(&mut self, input: &mut Input<'_>) -> Result<ControlId, FormatError> {
        Ok(named(self.control_at(input, 0)?)?.1)
    }

    fn method(&mut self, input: &mut Input<'_>) -> Result<MethodName, FormatError> {
        Ok(named(self.methods.get(input, 0)?)?.1.clone())
    }
}

/// What was said at an event, if it follows.
fn payload(input: &mut Input<'_>) -> Result<Option<Box<Payload>>, FormatError> {
    if input.0.first() != Some(&PAYLOAD) {
        return Ok(None);
    }
    input.byte()?;
    let bytes = input.number()?;
    let kept = input.count(Payload::BYTES_MAX)?;
    let text = str::from_utf8(input.bytes(kept)?).map_err(|_| FormatError::Content)?;
    Ok(Some(Box::new(named(Payload::kept(text, bytes))?)))
}

/// Where a name must stand.
fn named<T>(found: Option<T>) -> Result<T, FormatError> {
    found.ok_or(FormatError::Content)
}

fn end(input: &mut Input<'_>) -> Result<End, FormatError> {
    match input.byte()? {
        0 => Ok(End::Caller),
        1 => Ok(End::Callee),
        _ => Err(FormatError::Content),
    }
}

//! Bytes to entries.

use ddbx_protocol::{
    CallId, ChoiceName, ConnectionId, ControlId, Delay, EventId, EventKind, EventNumber,
    MethodName, PointLabel, ProcessName, RealTime,
};

use super::{DELAY, JUMP, Memory, NEXT_CALL, OTHER_CALL, kind, slot};
use crate::entry::{Choice, ChoiceValue, Entry, Gap, Moment, Why};
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
        Ok(match tag {
            kind::CHOICE => {
                let control = self.control(input)?;
                let name = named(self.choices.get(input, 0)?)?.1.clone();
                let len = input.count(ChoiceValue::BYTES_MAX)?;
                let value = ChoiceValue::new(input.bytes(len)?);
                let value = value.map_err(|_| FormatError::Content)?;
                Entry::Choice(Choice { control, name, value })
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
            _ => Entry::Event(self.event(tag, input)?),
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
                EventKind::CallSent { call: self.call(tag, input)?, method: self.method(input)? }
            }
            kind::CALL_ARRIVED => {
                let (call, method) = (self.call(tag, input)?, self.method(input)?);
                let sent_as = named(self.departure(input, 0)?)?;
                EventKind::CallArrived { call, method, sent_as }
            }
            kind::RETURN_SENT => EventKind::ReturnSent { call: self.call(tag, input)? },
            kind::RETURN_ARRIVED => {
                let call = self.call(tag, input)?;
                EventKind::ReturnArrived { call, sent_as: self.departure(input, 1)? }
            }
            kind::DEADLINE_EXPIRED => EventKind::DeadlineExpired { call: self.call(tag, input)? },
            kind::CANCELLED => {
                let call = self.call(tag, input)?;
                EventKind::Cancelled { call, sent_as: self.departure(input, 1)? }
            }
            // The rest is not about calls.
            _ if tag & (NEXT_CALL | OTHER_CALL) != 0 => return Err(FormatError::Content),
            kind::SPAWNED => {
                EventKind::Spawned { control: self.control(input)?, child: self.control(input)? }
            }
            kind::ENDED => EventKind::Ended { control: self.control(input)? },
            kind::POINT => {
                let control = self.control(input)?;
                let label = named(self.labels.get(input, 0)?)?.1.clone();
                EventKind::Point { control, label }
            }
            kind::CONNECTED => EventKind::Connected { connection: self.connection(input)? },
            kind::ACCEPTED => {
                let connection = self.connection(input)?;
                let sent_as = named(self.departure(input, 0)?)?;
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
        })
    }

    fn call(&mut self, tag: u8, input: &mut Input<'_>) -> Result<CallId, FormatError> {
        let (number, control) = named(self.controls.get(input, 0)?)?;
        let last = slot(&mut self.memory.calls, number);
        *last = match tag & (NEXT_CALL | OTHER_CALL) {
            0 => *last,
            NEXT_CALL => last.wrapping_add(1),
            OTHER_CALL => input.difference(*last)?,
            _ => return Err(FormatError::Content),
        };
        Ok(CallId { control: control.clone(), nth: *last })
    }

    fn departure(
        &mut self,
        input: &mut Input<'_>,
        reserved: u64,
    ) -> Result<Option<EventId>, FormatError> {
        let Some((number, process)) = self.processes.get(input, reserved)? else {
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
        Ok(named(self.controls.get(input, 0)?)?.1.clone())
    }

    fn method(&mut self, input: &mut Input<'_>) -> Result<MethodName, FormatError> {
        Ok(named(self.methods.get(input, 0)?)?.1.clone())
    }
}

/// Where a name must stand.
fn named<T>(found: Option<T>) -> Result<T, FormatError> {
    found.ok_or(FormatError::Content)
}

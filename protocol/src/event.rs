//! What happens, as one closed enum: the same events feed the screen, the
//! recording and, later, the database.
//!
//! Every arrival names its departure (`sent_as`). That is small, and enough to
//! compute vector clocks for any event on demand; vectors that travel would grow
//! with the system.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, CallPath, ConnectionId, ControlId, EventId, MethodName, PointLabel};
use crate::time::{Delay, RealTime};

/// One event of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Where, and its place in the order of that process.
    pub id: EventId,
    /// When, by the clock of that process.
    pub at: RealTime,
    /// The delay of the strand at that moment; its virtual clock is `at − delay`.
    pub delay: Delay,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A request is about to leave the caller.
    CallSent {
        /// Which call.
        call: CallId,
        /// What is called.
        method: MethodName,
        /// Something that follows from the arguments, and where the call goes: of calls
        /// that are made side by side it tells which is which. 0 if nobody asks.
        content: u16,
    },
    /// A request is about to reach its handler.
    CallArrived {
        /// Which call.
        call: CallId,
        /// What is called.
        method: MethodName,
        /// The `CallSent` it is the other end of; none when the caller takes no part.
        sent_as: Option<EventId>,
    },
    /// A response is about to leave the handler.
    ReturnSent {
        /// Which call.
        call: CallId,
    },
    /// A response is about to reach the caller.
    ReturnArrived {
        /// Which call.
        call: CallId,
        /// The `ReturnSent` it is the other end of; none when the error was made
        /// outside the handler's wrapper.
        sent_as: Option<EventId>,
    },
    /// The deadline of a call passed in virtual time.
    DeadlineExpired {
        /// Which call.
        call: CallId,
        /// Where it passed.
        end: End,
    },
    /// A call was given up: at the caller when it drops the call, at the callee when
    /// its handler is dropped. (tarpc's message says which call, but not who sent it.)
    Cancelled {
        /// Which call.
        call: CallId,
        /// Where.
        end: End,
    },
    /// A control begins, other than by a call.
    Spawned {
        /// Who.
        control: ControlId,
        /// Who has started it, if a control has.
        by: Option<ControlId>,
    },
    /// A control has nothing more to do.
    Ended {
        /// Who.
        control: ControlId,
    },
    /// A control passes a labelled place in user code.
    Point {
        /// Who.
        control: ControlId,
        /// The call that it handles; none where it began.
        call: Option<CallPath>,
        /// The label.
        label: PointLabel,
    },
    /// A timer has run out: the sleep of a control is over, or what it waits for has
    /// taken too long.
    Fired {
        /// Whose.
        control: ControlId,
        /// The call that it handles; none where it began.
        call: Option<CallPath>,
        /// Which of the timers that it has there.
        timer: u64,
    },
    /// A control gets what it shares with others: a lock, a permit, a message.
    Entered {
        /// Who.
        control: ControlId,
        /// The call that it handles; none where it began.
        call: Option<CallPath>,
        /// The how manieth time there.
        nth: u64,
        /// What.
        what: Shared,
        /// Of a message: who has sent it, if a control has.
        from: Option<ControlId>,
    },
    /// A client has built a connection.
    Connected {
        /// Which.
        connection: ConnectionId,
    },
    /// A server has met the client at the other end of a connection.
    Accepted {
        /// Which.
        connection: ConnectionId,
        /// The client's `Connected`.
        sent_as: EventId,
    },
    /// A connection ended, at either side.
    Closed {
        /// Which.
        connection: ConnectionId,
    },
}

/// An end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Where it was made.
    Caller,
    /// Where it is handled.
    Callee,
}

/// What controls of one process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shared {
    /// A lock for one.
    Lock,
    /// A lock for many, to read.
    Read,
    /// The same, to write.
    Write,
    /// A permit of a semaphore.
    Permit,
    /// A notification.
    Notice,
    /// A message of a channel.
    Message,
}

impl EventKind {
    /// The departure that this is the arrival of, if it is one.
    pub fn sent_as(&self) -> Option<&EventId> {
        match self {
            Self::Accepted { sent_as, .. } => Some(sent_as),
            Self::CallArrived { sent_as, .. } | Self::ReturnArrived { sent_as, .. } => {
                sent_as.as_ref()
            }
            _ => None,
        }
    }

    /// What it is in any run: without the departure that it names, and its content.
    pub fn identity(&self) -> Self {
        let mut kind = self.clone();
        match &mut kind {
            Self::CallSent { content, .. } => *content = 0,
            Self::CallArrived { sent_as, .. } | Self::ReturnArrived { sent_as, .. } => {
                *sent_as = None;
            }
            _ => {}
        }
        kind
    }

    /// Whether it has the same [`identity`](Self::identity) as another one. In a replay this
    /// is asked of every event, so nothing is made for it.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::CallSent { call, method, content: _ },
                Self::CallSent { call: other, method: others, content: _ },
            )
            | (
                Self::CallArrived { call, method, sent_as: _ },
                Self::CallArrived { call: other, method: others, sent_as: _ },
            ) => call == other && method == others,
            (
                Self::ReturnArrived { call, sent_as: _ },
                Self::ReturnArrived { call: other, sent_as: _ },
            ) => call == other,
            _ => self == other,
        }
    }

    /// Whether another process can name this event as the one it follows.
    pub fn is_departure(&self) -> bool {
        matches!(self, Self::CallSent { .. } | Self::ReturnSent { .. } | Self::Connected { .. })
    }

    /// The control that does it; connections belong to none.
    pub fn control(&self) -> Option<&ControlId> {
        match self {
            Self::Spawned { control, .. }
            | Self::Ended { control }
            | Self::Point { control, .. }
            | Self::Fired { control, .. }
            | Self::Entered { control, .. } => Some(control),
            _ => self.call().map(|call| &call.control),
        }
    }

    /// Whether it is about a connection. How often those are made is luck.
    pub fn is_of_connection(&self) -> bool {
        matches!(self, Self::Connected { .. } | Self::Accepted { .. } | Self::Closed { .. })
    }

    /// The call that it is about.
    pub fn call(&self) -> Option<&CallId> {
        match self {
            Self::CallSent { call, .. }
            | Self::CallArrived { call, .. }
            | Self::ReturnSent { call }
            | Self::ReturnArrived { call, .. }
            | Self::DeadlineExpired { call, .. }
            | Self::Cancelled { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The call that it is about, or that its control handles meanwhile; none where the
    /// control began.
    pub fn path(&self) -> Option<&CallPath> {
        match self {
            Self::Point { call, .. } | Self::Fired { call, .. } | Self::Entered { call, .. } => {
                call.as_ref()
            }
            _ => self.call().map(|call| &call.path),
        }
    }

    /// What a control does by itself is done in a frame: by the handler of a call, or where
    /// it began. None of what it is told, and where time runs out.
    pub fn own_frame(&self) -> Option<(&ControlId, Option<CallPath>)> {
        let frame = match self {
            Self::CallSent { call, .. } => call.path.outer(),
            Self::ReturnSent { call } => Some(call.path.clone()),
            Self::Point { call, .. } | Self::Entered { call, .. } => call.clone(),
            Self::Ended { .. } => None,
            _ => return None,
        };
        Some((self.control()?, frame))
    }

    /// The method, where that is known.
    pub fn method(&self) -> Option<&MethodName> {
        match self {
            Self::CallSent { method, .. } | Self::CallArrived { method, .. } => Some(method),
            _ => None,
        }
    }
}

/// For people, without the process.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallSent { call, method, .. } => write!(f, "calls {method}  {call}"),
            Self::CallArrived { call, method, .. } => write!(f, "receives {method}  {call}"),
            Self::ReturnSent { call } => write!(f, "answers  {call}"),
            Self::ReturnArrived { call, .. } => write!(f, "has the answer  {call}"),
            Self::DeadlineExpired { call, .. } => write!(f, "deadline passed  {call}"),
            Self::Cancelled { call, end: End::Caller } => write!(f, "gives up  {call}"),
            Self::Cancelled { call, end: End::Callee } => write!(f, "is cancelled  {call}"),
            Self::Spawned { control, by: None } => write!(f, "{control} begins"),
            Self::Spawned { control, by: Some(by) } => write!(f, "{by} starts {control}"),
            Self::Ended { control } => write!(f, "{control} ends"),
            Self::Point { control, call, label } => {
                write!(f, "point {label}  {}", Frame(control, call))
            }
            Self::Fired { control, call, timer } => {
                write!(f, "timer {timer} runs out  {}", Frame(control, call))
            }
            Self::Entered { control, call, what, from, .. } => {
                f.write_str(match what {
                    Shared::Lock => "has the lock",
                    Shared::Read => "has the lock to read",
                    Shared::Write => "has the lock to write",
                    Shared::Permit => "has a permit",
                    Shared::Notice => "is notified",
                    Shared::Message => "has a message",
                })?;
                if let Some(from) = from {
                    write!(f, " of {from}")?;
                }
                write!(f, "  {}", Frame(control, call))
            }
            Self::Connected { connection } => write!(f, "has connection {}", connection.nth),
            Self::Accepted { connection, .. } => {
                write!(f, "accepts connection {} of {}", connection.nth, connection.client)
            }
            Self::Closed { connection } => write!(f, "closes connection {}", connection.nth),
        }
    }
}

/// A control, and the call that it handles.
struct Frame<'a>(&'a ControlId, &'a Option<CallPath>);

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        self.1.iter().try_for_each(|call| write!(f, "!{call}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{EventNumber, ProcessName};

    #[test]
    fn who_is_alike_has_one_identity() {
        let control = |name: &str| ControlId::new(name).unwrap();
        let mut kinds = Vec::new();
        for (who, nth, name) in [("p/a", 1, "x"), ("p/a", 2, "x"), ("p/a", 1, "y"), ("p/b", 1, "x")]
        {
            let call = CallId { control: control(who), path: CallPath::root(nth) };
            let (method, label) = (MethodName::new(name).unwrap(), PointLabel::new(name).unwrap());
            let path = Some(call.path.clone());
            for number in 1..3 {
                let process = ProcessName::new("q").unwrap();
                let sent_as = Some(EventId { process, number: EventNumber(number) });
                let (call, method, content) = (call.clone(), method.clone(), number as u16);
                kinds.push(EventKind::CallSent {
                    call: call.clone(),
                    method: method.clone(),
                    content,
                });
                kinds.push(EventKind::CallArrived {
                    call: call.clone(),
                    method,
                    sent_as: sent_as.clone(),
                });
                kinds.push(EventKind::ReturnArrived { call, sent_as });
            }
            kinds.push(EventKind::ReturnSent { call: call.clone() });
            for end in [End::Caller, End::Callee] {
                kinds.push(EventKind::DeadlineExpired { call: call.clone(), end });
            }
            let control = call.control;
            kinds.push(EventKind::Fired { control: control.clone(), call: path.clone(), timer: 1 });
            kinds.push(EventKind::Point { control, call: path, label });
        }
        for one in &kinds {
            for other in &kinds {
                let is_like = one.identity() == other.identity();
                assert_eq!(one.is_like(other), is_like, "{one:?} {other:?}");
            }
        }
    }
}

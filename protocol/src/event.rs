//! What happens, as one closed enum: the same events feed the screen, the
//! recording and, later, the database.
//!
//! Every arrival names its departure (`sent_as`). That is small, and enough to
//! compute vector clocks for any event on demand; vectors that travel would grow
//! with the system.

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, ConnectionId, ControlId, EventId, MethodName, PointLabel};
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A request is about to leave the caller.
    CallSent {
        /// Which call.
        call: CallId,
        /// What is called.
        method: MethodName,
    },
    /// A request is about to reach its handler.
    CallArrived {
        /// Which call.
        call: CallId,
        /// What is called.
        method: MethodName,
        /// The `CallSent` it is the other end of.
        sent_as: EventId,
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
    /// The deadline of a call passed in virtual time, at the caller or the callee.
    DeadlineExpired {
        /// Which call.
        call: CallId,
    },
    /// A call was given up: at the caller when it drops the call, at the callee
    /// when it hears of that.
    Cancelled {
        /// Which call.
        call: CallId,
        /// At the callee: the caller's `Cancelled`.
        sent_as: Option<EventId>,
    },
    /// A control starts another one in the same process.
    Spawned {
        /// Who starts it.
        control: ControlId,
        /// Who is started.
        child: ControlId,
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
        /// The label.
        label: PointLabel,
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

impl EventKind {
    /// The departure that this is the arrival of, if it is one.
    pub fn sent_as(&self) -> Option<&EventId> {
        match self {
            Self::CallArrived { sent_as, .. } | Self::Accepted { sent_as, .. } => Some(sent_as),
            Self::ReturnArrived { sent_as, .. } | Self::Cancelled { sent_as, .. } => {
                sent_as.as_ref()
            }
            Self::CallSent { .. }
            | Self::ReturnSent { .. }
            | Self::DeadlineExpired { .. }
            | Self::Spawned { .. }
            | Self::Ended { .. }
            | Self::Point { .. }
            | Self::Connected { .. }
            | Self::Closed { .. } => None,
        }
    }

    /// Whether another process can name this event as the one it follows.
    pub fn is_departure(&self) -> bool {
        matches!(
            self,
            Self::CallSent { .. }
                | Self::ReturnSent { .. }
                | Self::Cancelled { sent_as: None, .. }
                | Self::Connected { .. }
        )
    }

    /// The control that does it; connections belong to none.
    pub fn control(&self) -> Option<&ControlId> {
        match self {
            Self::CallSent { call, .. }
            | Self::CallArrived { call, .. }
            | Self::ReturnSent { call }
            | Self::ReturnArrived { call, .. }
            | Self::DeadlineExpired { call }
            | Self::Cancelled { call, .. } => Some(&call.control),
            Self::Spawned { control, .. }
            | Self::Ended { control }
            | Self::Point { control, .. } => Some(control),
            Self::Connected { .. } | Self::Accepted { .. } | Self::Closed { .. } => None,
        }
    }
}

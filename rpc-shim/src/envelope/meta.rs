//! What the debugger adds to messages. On the wire it is [packed](super::packed).

use std::fmt;

use ddbx_protocol::{CallPath, Delay, EventNumber, ProcessIndex, ProcessName, Stack, VirtualTime};
use ddbx_satellite::driver::Floor;
use serde::{Deserialize, Serialize};

use crate::deadlines::Remaining;
use crate::naming::Name;

/// What travels with a request.
#[derive(Clone)]
pub struct RequestMeta {
    /// The processes that wait for the call, the outermost first.
    pub(crate) stack: Stack,
    /// Whose call.
    pub(crate) control: Name,
    /// Which of its calls.
    pub(crate) path: CallPath,
    /// How it has left its caller.
    pub(crate) left: Left,
    /// What is left of the deadline.
    pub(crate) remaining: Remaining,
    /// Whether somebody was held before it was really sent, over a wire.
    pub(crate) has_waited: bool,
    /// Who calls, until something has come back over the connection. (A request of
    /// its own would be seen by hooks around the wrapper, and count in tarpc's limits.)
    pub(crate) hello: Option<Box<Hello>>,
    /// How far its caller's process is behind; unknown over a wire.
    pub(crate) floor: Option<Floor>,
}

/// How a call has left its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// What its clock showed.
    pub(crate) at: VirtualTime,
    /// The delay of the strand.
    pub(crate) delay: Delay,
    /// Whether the user has let it go on anyway.
    pub(crate) is_free: bool,
    /// The departure that this is, in the last process of the stack; 0 if nobody wanted to
    /// know of it.
    pub(crate) sent: EventNumber,
}

impl Default for RequestMeta {
    fn default() -> Self {
        Self {
            stack: Stack::default(),
            control: Name::default(),
            path: CallPath::root(0),
            left: Left::default(),
            remaining: Remaining::default(),
            has_waited: false,
            hello: None,
            floor: None,
        }
    }
}

impl RequestMeta {
    /// The delay of the strand. A request that leaves its caller may still wait in tarpc's own
    /// queue for others to be answered: what that costs is known when it is really sent.
    #[inline]
    pub(crate) fn delay(&self) -> Delay {
        let Left { at, delay, .. } = self.left;
        self.floor.map_or(delay, |floor| floor.woken_by_anybody(at, delay))
    }

    /// Whether somebody was held while it was on its way, so that it comes with this delay.
    pub(crate) fn has_waited(&self, delay: Delay) -> bool {
        self.has_waited || self.left.delay != delay
    }
}

impl fmt::Debug for RequestMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} after {:?}", self.control, self.path, self.delay())
    }
}

/// What travels with a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The delay of the strand.
    pub(crate) delay: Delay,
    /// Whether the user has let it go on anyway.
    pub(crate) is_free: bool,
    /// Who answers.
    pub(crate) from: ProcessIndex,
    /// The departure that this is there; 0 if nobody wanted to know of it.
    pub(crate) sent: EventNumber,
    /// Its name, if the caller has introduced itself.
    pub(crate) name: Option<ProcessName>,
}

impl ResponseMeta {
    /// Whether nothing is to be said but the delay: who answers is of interest only with the
    /// rest.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        !self.is_free && self.sent == EventNumber::default() && self.name.is_none()
    }
}

/// How a connection introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The caller's name in the session.
    pub(crate) name: ProcessName,
    /// The connection, counted by the caller.
    pub(crate) connection: u32,
    /// Its beginning there.
    pub(crate) connected: EventNumber,
    /// Which of the names that the caller has had: it may get another one. Others need not
    /// know.
    #[serde(skip)]
    pub(crate) names_had: u64,
}

//! What the debugger adds to messages. On the wire it is [packed](super::packed).

use std::borrow::Cow;
use std::fmt;

use ddbx_protocol::{CallPath, Delay, EventNumber, ProcessIndex, ProcessName, Stack, VirtualTime};
use ddbx_satellite::driver::Floor;
use serde::{Deserialize, Serialize};

use crate::deadlines::Remaining;
use crate::naming::Name;

/// What travels with a request.
#[derive(Clone, Default)]
pub struct RequestMeta {
    pub(crate) brief: Brief,
    /// What the caller's clock showed when it left.
    pub(crate) left_at: VirtualTime,
    /// How far its caller's process is behind; unknown over a wire.
    pub(crate) floor: Option<Floor>,
    /// How much is said.
    says: Says,
    /// It stays in the room.
    more: Box<More>,
}

/// How much is said of a request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Says {
    /// Nothing: there is no session.
    #[default]
    Nothing,
    /// What every request says.
    Brief,
    /// More than that.
    More,
}

/// What every request says; and of most there is nothing else to be said: a control from outside
/// makes its first call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Brief {
    /// The delay of the strand.
    pub(crate) delay: Delay,
    /// What is left of the deadline.
    pub(crate) remaining: Remaining,
    /// The departure that this is, in the caller's process; 0 if nobody wanted to know of it.
    pub(crate) sent: EventNumber,
    /// Who calls.
    pub(crate) caller: ProcessIndex,
    /// Of a control without a name: the hash of the arguments with which it began, and which of
    /// its likes it is.
    pub(crate) hash: u64,
    pub(crate) nth: u32,
    /// Whether the user has let it go on anyway.
    pub(crate) is_free: bool,
    /// Whether somebody was held before it was really sent, over a wire.
    pub(crate) has_waited: bool,
}

/// What few requests say besides.
#[derive(Clone)]
pub(crate) struct More {
    /// The processes that wait for the call, the outermost first.
    pub(crate) stack: Stack,
    /// Whose call.
    pub(crate) control: Name,
    /// Which of its calls.
    pub(crate) path: CallPath,
    /// Who calls, until something has come back over the connection. (A request of
    /// its own would be seen by hooks around the wrapper, and count in tarpc's limits.)
    pub(crate) hello: Option<Box<Hello>>,
}

impl Default for More {
    fn default() -> Self {
        let (stack, control) = (Stack::default(), Name::default());
        Self { stack, control, path: CallPath::root(0), hello: None }
    }
}

/// The first call of a control from outside.
pub(crate) const FIRST: u32 = 1;

impl RequestMeta {
    /// Says nothing.
    #[inline]
    pub(crate) fn set_nothing(&mut self) {
        self.says = Says::Nothing;
    }

    /// Whether it says anything.
    #[inline]
    pub(crate) fn says_anything(&self) -> bool {
        self.says != Says::Nothing
    }

    /// Says no more than this.
    #[inline]
    pub(crate) fn set_brief(&mut self, brief: Brief) {
        (self.brief, self.says) = (brief, Says::Brief);
    }

    /// Says more than that, which is to be written.
    #[inline]
    pub(crate) fn more_mut(&mut self) -> &mut More {
        self.says = Says::More;
        &mut self.more
    }

    /// What is said besides.
    #[inline]
    pub(crate) fn more(&self) -> Option<&More> {
        if self.says == Says::More { Some(&self.more) } else { None }
    }

    /// The delay of the strand. A request that leaves its caller may still wait in tarpc's own
    /// queue for others to be answered: what that costs is known when it is really sent.
    #[inline]
    pub(crate) fn delay(&self) -> Delay {
        let delay = self.brief.delay;
        self.floor.map_or(delay, |floor| floor.woken_by_anybody(self.left_at, delay))
    }

    /// Whether somebody was held while it was on its way, so that it comes with this delay.
    #[inline]
    pub(crate) fn has_waited(&self, delay: Delay) -> bool {
        self.brief.has_waited || self.brief.delay != delay
    }

    /// The processes that wait for the call.
    #[inline]
    pub(crate) fn stack(&self) -> Stack {
        self.more().map_or_else(|| Stack::home(self.brief.caller), |more| more.stack.clone())
    }

    /// The first of them.
    #[inline]
    pub(crate) fn home(&self) -> Option<ProcessIndex> {
        self.more().map_or(Some(self.brief.caller), |more| more.stack.0.first().copied())
    }

    /// The last of them.
    #[inline]
    pub(crate) fn caller(&self) -> Option<ProcessIndex> {
        self.more().map_or(Some(self.brief.caller), |more| more.stack.top())
    }

    /// Which of its control's calls it is.
    #[inline]
    pub(crate) fn path(&self) -> CallPath {
        self.more().map_or_else(|| CallPath::root(FIRST), |more| more.path.clone())
    }

    /// Whose call.
    #[inline]
    pub(crate) fn control(&self) -> Cow<'_, Name> {
        let Brief { hash, nth, .. } = self.brief;
        let root = || Cow::Owned(Name::Root { hash, nth, began: None });
        self.more().map_or_else(root, |more| Cow::Borrowed(&more.control))
    }

    /// Who calls, if that is said.
    #[inline]
    pub(crate) fn hello(&self) -> Option<&Hello> {
        self.more()?.hello.as_deref()
    }
}

impl fmt::Debug for RequestMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} after {:?}", self.control(), self.path(), self.delay())
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

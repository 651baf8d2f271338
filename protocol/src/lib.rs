//! The words that all parts of ddbx share: who ([`ids`]), when ([`time`]), what
//! ([`event`]) and after what ([`causality`]). Types only; nothing here does I/O.

pub mod causality;
pub mod event;
pub mod ids;
pub mod time;

pub use causality::{Causality, MissingDeparture, VectorClock};
pub use event::{Event, EventKind};
pub use ids::{
    BreakpointId, CallId, ConnectionId, ControlId, EventId, EventNumber, HoldId, InvalidName,
    MethodName, PointLabel, ProcessName,
};
pub use time::{Delay, RealTime, VirtualTime};

//! The words that all parts of ddbx share: who ([`ids`]), when ([`time`]), what
//! ([`event`]) and after what ([`causality`]); and what satellites and central say
//! to each other ([`session`]). Types only; nothing here does I/O.

pub mod breakpoint;
pub mod causality;
pub mod event;
pub mod ids;
pub mod reading;
pub mod safeguards;
pub mod session;
pub mod spec;
pub mod time;

pub use breakpoint::{Breakpoint, Place, RpcEvent, Scope};
pub use causality::{Causality, MissingDeparture, VectorClock};
pub use event::{Event, EventKind};
pub use ids::{
    BreakpointId, CallId, ConnectionId, ControlId, EventId, EventNumber, HoldId, InvalidName,
    MethodName, PointLabel, ProcessName,
};
pub use reading::Reading;
pub use safeguards::{AllOn, Safeguard, Safeguards};
pub use session::{
    Mode, Open, Permit, ProcessIndex, Stack, StopId, StopReason, Timed, ToCentral, ToSatellite,
};
pub use spec::{InvalidSpec, Pattern, Spec};
pub use time::{Delay, RealTime, VirtualTime};

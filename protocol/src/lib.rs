//! The words that all parts of ddbx share: who ([`ids`]), when ([`time`]), what
//! ([`event`]) and after what ([`causality`]); and what satellites and central say
//! to each other ([`session`]). Types only, and what they mean; except for the sockets
//! over which they reach each other ([`link`]) nothing here does I/O.

pub mod attach;
pub mod bounded;
pub mod breakpoint;
pub mod causality;
pub mod condition;
pub mod control;
pub mod event;
pub mod gate;
pub mod ids;
pub mod link;
pub mod reading;
pub mod replay;
pub mod safeguards;
pub mod session;
pub mod spec;
pub mod time;

pub use attach::{
    Attach, Count, DroppedHere, FromCentral, FromSatellite, InFlight, Names, ProcessKey,
    RecordedSoFar, Standing, Status,
};
pub use breakpoint::{Breakpoint, Place, RpcEvent, Scope};
pub use causality::{Causality, MissingDeparture, VectorClock};
pub use condition::{Condition, InvalidCondition};
pub use event::{End, Event, EventKind, Shared};
pub use gate::Gate;
pub use ids::{
    BreakpointId, CallId, CallPath, ChoiceName, ConnectionId, ControlId, EventId, EventNumber,
    HoldId, InvalidName, MethodName, PointLabel, ProcessName, SessionName,
};
pub use reading::Reading;
pub use replay::Progress;
pub use safeguards::{AllOn, Safeguard, Safeguards};
pub use session::{
    Mode, Open, Permit, ProcessIndex, Stack, StopId, StopReason, Timed, ToCentral, ToSatellite,
};
pub use spec::{InvalidSpec, Pattern, Spec};
pub use time::{Delay, RealTime, VirtualTime};

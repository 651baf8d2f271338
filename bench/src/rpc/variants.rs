//! What is compared: the pairs of processes that there are, and which of their lanes.

use std::collections::BTreeMap;
use std::io;

use ddbx_protocol::control::Wanted;

use super::abba::Contrast;
use super::others::{CONSOLE, OTLP, Other, Sink};
use super::pair::{Pair, Setup};
use crate::peers::Lane;
use crate::session::OpenSession;
use crate::verdict::skipped;

/// Processes in which there are breakpoints, elsewhere.
pub const PLANTED: &str = "planted";
const BREAKPOINTS: usize = 20;

/// Two processes in one environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// In no session.
    Alone,
    Attached,
    /// With what `DDBX_RECORD` gives.
    Recorded,
    /// With what `ddbx run --record` gives: one control of a process runs at a time.
    Exactly,
    Otlp,
    Console,
}

pub type Pairs = BTreeMap<Of, Pair>;

pub const NULL: &str = "bare again (null)";
pub const WITHOUT: &str = "without a session";
pub const IDLE: &str = "attached and idle";
pub const BREAKS: &str = "20 breakpoints elsewhere";
pub const BREAKS_OVER_IDLE: &str = "20 breakpoints over idle";
pub const RECORDS: &str = "recording";
pub const RECORDS_EXACTLY: &str = "recording exactly";
pub const ASKS: &str = "asks before each call";

/// The null row comes first.
pub const CONTRASTS: [Contrast; 10] = [
    contrast(NULL, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Again)),
    contrast(WITHOUT, (Of::Alone, Lane::Bare), (Of::Alone, Lane::Wrapped)),
    contrast(IDLE, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Wrapped)),
    contrast(BREAKS, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Planted)),
    contrast(BREAKS_OVER_IDLE, (Of::Attached, Lane::Wrapped), (Of::Attached, Lane::Planted)),
    contrast(RECORDS, (Of::Recorded, Lane::Bare), (Of::Recorded, Lane::Wrapped)),
    contrast(RECORDS_EXACTLY, (Of::Exactly, Lane::Bare), (Of::Exactly, Lane::Wrapped)),
    contrast(ASKS, (Of::Alone, Lane::Bare), (Of::Alone, Lane::Asks)),
    // Large effects: these hear of every call in their process, so the bare one is elsewhere.
    contrast(OTLP.name, (Of::Alone, Lane::Bare), (Of::Otlp, Lane::Bare)),
    contrast(CONSOLE.name, (Of::Alone, Lane::Bare), (Of::Console, Lane::Bare)),
];

const fn contrast(name: &'static str, base: (Of, Lane), variant: (Of, Lane)) -> Contrast {
    Contrast { name, base, variant }
}

/// Starts all pairs that can be; says which cannot.
pub fn start(session: &OpenSession, sink: &Sink, json: bool) -> io::Result<Pairs> {
    for nth in 0..BREAKPOINTS {
        let spec = format!("{PLANTED}:Elsewhere.method_{nth}@arrive");
        let planted = session.session.plant(Wanted { spec, ..Wanted::default() }, None);
        planted.map_err(io::Error::other)?;
    }
    let exactly = vec![("DDBX_EXACT", "1".to_owned())];
    let collector = vec![("BENCH_SINK", sink.address.to_string())];
    let attached = || Setup { session: Some(session.address.clone()), ..Setup::default() };
    let recorded = || Setup { is_recorded: true, ..attached() };
    let mut setups = vec![
        (Of::Alone, Setup { has_third: true, ..Setup::default() }),
        (Of::Attached, attached()),
        (Of::Recorded, recorded()),
        (Of::Exactly, Setup { environment: exactly, ..recorded() }),
    ];
    let mut add = |of, other: &Other, environment| match other.program() {
        None => skipped(other.name, &format!("not built; {}", other.build), json),
        program => setups.push((of, Setup { program, environment, ..Setup::default() })),
    };
    add(Of::Otlp, &OTLP, collector);
    add(Of::Console, &CONSOLE, Vec::new());
    setups.iter().map(|(of, setup)| Ok((*of, Pair::start(setup)?))).collect()
}

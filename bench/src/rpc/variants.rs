//! What is compared: the pairs of processes that there are, and which of their lanes.

use std::collections::BTreeMap;
use std::io;

use ddbx_protocol::control::Wanted;

use super::abba::Contrast;
use super::others::{Other, Sink};
use super::pair::{Pair, Setup};
use crate::peers::Lane;
use crate::session::OpenSession;

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
    /// With what `DDBX_PAYLOADS` gives as well: arguments and results.
    Said,
    /// In a session that is asked at every event.
    Asking,
    /// Under something else than ddbx.
    Other,
}

pub type Pairs = BTreeMap<Of, Pair>;

pub const NULL: &str = "bare again (null)";
pub const WITHOUT: &str = "without a session";
pub const IDLE: &str = "attached and idle";
pub const BREAKS: &str = "20 breakpoints elsewhere";
pub const BREAKS_OVER_IDLE: &str = "20 breakpoints over idle";
pub const RECORDS: &str = "recording";
pub const RECORDS_PAYLOADS: &str = "recording with payloads";
pub const RECORDS_EXACTLY: &str = "recording exactly";
pub const ASKS: &str = "asks at every event";

/// What is measured together.
pub struct Group<'a> {
    pub pairs: Pairs,
    start: Box<dyn Fn() -> io::Result<Pairs> + 'a>,
    pub contrasts: &'static [Contrast],
}

impl<'a> Group<'a> {
    fn new(
        start: impl Fn() -> io::Result<Pairs> + 'a,
        contrasts: &'static [Contrast],
    ) -> io::Result<Self> {
        Ok(Self { pairs: start()?, start: Box::new(start), contrasts })
    }

    /// Other processes take the place of these: what lies where in their memory differs between
    /// two runs of a program, and no two windows of one pair of processes show how much that is.
    pub fn start_anew(&mut self) -> io::Result<()> {
        self.pairs.clear();
        self.pairs = (self.start)()?;
        Ok(())
    }
}

/// Small effects, each beside the bare one in the same processes.
const OURS: [Contrast; 9] = [
    contrast(NULL, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Again)),
    contrast(WITHOUT, (Of::Alone, Lane::Bare), (Of::Alone, Lane::Wrapped)),
    contrast(IDLE, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Wrapped)),
    contrast(BREAKS, (Of::Attached, Lane::Bare), (Of::Attached, Lane::Planted)),
    contrast(BREAKS_OVER_IDLE, (Of::Attached, Lane::Wrapped), (Of::Attached, Lane::Planted)),
    contrast(RECORDS, (Of::Recorded, Lane::Bare), (Of::Recorded, Lane::Wrapped)),
    contrast(RECORDS_PAYLOADS, (Of::Said, Lane::Bare), (Of::Said, Lane::Wrapped)),
    contrast(RECORDS_EXACTLY, (Of::Exactly, Lane::Bare), (Of::Exactly, Lane::Wrapped)),
    contrast(ASKS, (Of::Asking, Lane::Bare), (Of::Asking, Lane::Wrapped)),
];

const fn contrast(name: &'static str, base: (Of, Lane), variant: (Of, Lane)) -> Contrast {
    Contrast { name, base, variant }
}

/// ddbx, and the paper's protocol: a session that is asked. What is asked counts too, and is on
/// the same core.
pub fn ours<'a>(session: &'a OpenSession, asked: &'a OpenSession) -> io::Result<Group<'a>> {
    for nth in 0..BREAKPOINTS {
        let spec = format!("{PLANTED}:Elsewhere.method_{nth}@arrive");
        let planted = session.session.plant(Wanted { spec, ..Wanted::default() }, None);
        planted.map_err(io::Error::other)?;
    }
    let setups = || {
        let exactly = vec![("DDBX_EXACT", "1".to_owned())];
        let payloads = vec![("DDBX_PAYLOADS", "1".to_owned())];
        let (asked, central) = (Some(asked.address.clone()), Some(std::process::id()));
        let asking = Setup { session: asked, central, ..Setup::default() };
        let attached = || Setup { session: Some(session.address.clone()), ..Setup::default() };
        let recorded = || Setup { is_recorded: true, ..attached() };
        start([
            (Of::Alone, Setup::default()),
            (Of::Attached, attached()),
            (Of::Recorded, recorded()),
            (Of::Exactly, Setup { environment: exactly, ..recorded() }),
            (Of::Said, Setup { environment: payloads, ..recorded() }),
            (Of::Asking, asking),
        ])
    };
    Group::new(setups, &OURS)
}

/// Something else, if it is built. It hears of every call in its process, so the bare one is
/// elsewhere: its effects are large. It is started when all others are gone, for some of what
/// it does it does behind the calls.
pub fn other<'a>(other: &'static Other, sink: &'a Sink) -> io::Result<Option<Group<'a>>> {
    let Some(program) = other.program() else { return Ok(None) };
    let setups = move || {
        let environment = vec![("BENCH_SINK", sink.address.to_string())];
        let program = Some(program.clone());
        start([
            (Of::Alone, Setup::default()),
            (Of::Other, Setup { program, environment, ..Setup::default() }),
        ])
    };
    Group::new(setups, &other.contrast).map(Some)
}

/// How something else is compared.
pub const fn of_other(name: &'static str) -> [Contrast; 1] {
    [contrast(name, (Of::Alone, Lane::Bare), (Of::Other, Lane::Bare))]
}

fn start<const N: usize>(setups: [(Of, Setup); N]) -> io::Result<Pairs> {
    setups.iter().map(|(of, setup)| Ok((*of, Pair::start(setup)?))).collect()
}

//! A schedule: what a system of processes does, who is held where, and what goes wrong
//! then. It follows from its seed alone.
//!
//! Both runs of a schedule, with the debugger and without, must mean the same. So nothing
//! is triggered by time. What goes wrong with the debugger goes wrong while a certain call
//! is held, and does not happen at all in the other run. What goes wrong with the program
//! happens in both when that call is in a certain process: there it waits for an order.
//! While a process is held its virtual clock stands, so calls that are begun during the
//! hold come to it after the fault. In the run without a debugger they are begun after the
//! fault, then.
//!
//! Where it is not the holder that fails but another service on the way, the clock of that
//! one goes on during the hold: its end is later, in virtual time, than what the held call
//! does. So it fails before any deadline has passed; otherwise the deadline is the earlier
//! event of the two, and would rightly win.

use std::fmt;

use super::kinds::{Kind, Way};

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Which one of its run.
    pub number: u64,
    /// How many services there are; a program of its own begins all calls.
    pub services: usize,
    /// Whether the run with the debugger is recorded.
    pub is_recorded: bool,
    /// What happens, one after the other.
    pub acts: Vec<Act>,
}

/// A call is held, something goes wrong, and all calls come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// What goes wrong.
    pub kind: Kind,
    /// To which service, if it is a matter of the program.
    pub target: usize,
    /// Through which services the held call goes.
    pub path: Vec<usize>,
    /// Where it is held.
    pub gate: Gate,
    /// Whether only it is held, or its process.
    pub holds_call_only: bool,
    /// For how long it is held before anything goes wrong.
    pub held_ms: u64,
    /// For how long something is stopped.
    pub stopped_ms: u64,
    /// Which directions fail.
    pub fails: Directions,
    /// What else is called meanwhile.
    pub others: Vec<Call>,
}

/// Where the held call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Where the last service gets it.
    Arrive,
    /// Where the last service answers.
    Return,
    /// Where the last but one calls the last.
    Call,
    /// Where the last but one gets the answer.
    Resume,
    /// At a point in the last one's handler.
    Point,
}

/// Over which directions of a connection nothing comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Both.
    Both,
    /// From the satellite to central.
    ToCentral,
    /// From central to the satellite.
    ToSatellite,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it is called in its act.
    pub name: &'static str,
    /// Through which services it goes.
    pub path: Vec<usize>,
    /// How long the last of them works.
    pub work_ms: u64,
    /// How long it may take.
    pub deadline_ms: u64,
}

/// The name of the call that is held.
pub const HELD: &str = "held";

/// What calls may take: far more than they need on a busy machine, and less than the time
/// for which half of the held ones are held.
const DEADLINE_MS: u64 = 2_000;

/// The same where a process is stopped for up to 3.2 s: without a debugger, too.
const DEADLINE_OVER_STOP_MS: u64 = 12_000;

/// Something that works for a minute always misses this one.
const DEADLINE_MISSED_MS: u64 = 300;

impl Schedule {
    /// The schedule with this number. What goes wrong first goes round.
    pub fn new(seed: u64, number: u64) -> Self {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number);
        let mut random = fastrand::Rng::with_seed(mixed);
        let first = Kind::ALL[(number % Kind::ALL.len() as u64) as usize];
        let services = random.usize(3..=4);
        let mut kinds = vec![first];
        // What cannot be had everywhere comes alone, so that little is skipped with it.
        let is_alone = |kind: Kind| matches!(kind, Kind::NetworkCut | Kind::DiskFull);
        let joins = |kind: &Kind| !is_alone(first) && !is_alone(*kind) && kind.way() <= first.way();
        for _ in 1..[1, 1, 2, 3][random.usize(..4)] {
            let possible: Vec<Kind> = Kind::ALL.into_iter().filter(joins).collect();
            kinds.extend(random.choice(possible));
        }
        let is_recorded = first == Kind::DiskFull || random.bool();
        let acts = kinds.into_iter().map(|kind| Act::new(kind, services, &mut random)).collect();
        Self { number, services, is_recorded, acts }
    }

    /// How the services reach central.
    pub fn way(&self) -> Way {
        self.acts.iter().map(|act| act.kind.way()).max().unwrap_or(Way::Direct)
    }

    /// Whether it needs a disk that can be filled.
    pub fn fills_a_disk(&self) -> bool {
        self.acts.iter().any(|act| act.kind == Kind::DiskFull)
    }
}

impl Act {
    fn new(kind: Kind, services: usize, random: &mut fastrand::Rng) -> Self {
        let mut path: Vec<usize> = (0..services).collect();
        random.shuffle(&mut path);
        path.truncate(random.usize(2..=3));
        let last = path[path.len() - 1];
        let target = match kind {
            kind if kind.is_panic() => last,
            kind if kind.is_of_the_program() => path[random.usize(..path.len())],
            _ => last,
        };
        let gates: &[Gate] = match kind {
            kind if kind.is_panic() => &[Gate::Point],
            kind if kind.is_of_the_program() => &[Gate::Arrive, Gate::Point],
            _ => &[Gate::Arrive, Gate::Return, Gate::Call, Gate::Resume, Gate::Point],
        };
        let gate = gates[random.usize(..gates.len())];
        let fails_elsewhere = kind.is_of_the_program() && target != last;
        let is_long = random.bool() && !fails_elsewhere;
        let held_ms = if is_long { random.u64(2_200..2_600) } else { random.u64(50..500) };
        let is_long = random.bool() && kind != Kind::CentralSlow;
        let stopped_ms = if is_long { random.u64(2_600..3_200) } else { random.u64(200..900) };
        let directions = [Directions::Both, Directions::ToCentral, Directions::ToSatellite];
        let mut act = Self {
            kind,
            target,
            path,
            gate,
            holds_call_only: random.u8(..4) == 0,
            held_ms,
            stopped_ms,
            fails: directions[random.usize(..directions.len())],
            others: Vec::new(),
        };
        act.others = act.other_calls(services, random);
        act
    }

    fn other_calls(&self, services: usize, random: &mut fastrand::Rng) -> Vec<Call> {
        let mut spared: Vec<usize> = (0..services).filter(|one| *one != self.target).collect();
        random.shuffle(&mut spared);
        let deadline_ms = self.deadline_ms();
        let around = spared[..random.usize(1..=2)].to_vec();
        let late = vec![spared[random.usize(..spared.len())]];
        let path = self.path.clone();
        let mut calls = vec![
            Call { name: "behind", path, work_ms: 0, deadline_ms },
            Call { name: "around", path: around, work_ms: random.u64(..20), deadline_ms },
            Call { name: "late", path: late, work_ms: 60_000, deadline_ms: DEADLINE_MISSED_MS },
        ];
        calls.retain(|_| random.u8(..4) > 0);
        calls
    }

    /// How long its calls may take.
    pub fn deadline_ms(&self) -> u64 {
        match self.kind {
            Kind::ServiceStopped => DEADLINE_OVER_STOP_MS,
            _ => DEADLINE_MS,
        }
    }

    /// The service in which the call is held.
    pub fn holder(&self) -> usize {
        let back = match self.gate {
            Gate::Arrive | Gate::Return | Gate::Point => 1,
            Gate::Call | Gate::Resume => 2,
        };
        self.path[self.path.len() - back]
    }

    /// The service in which the held call waits for an order, if it does.
    pub fn awaits_in(&self) -> Option<usize> {
        self.kind.is_of_the_program().then(|| self.path[self.path.len() - 1])
    }

    /// Where to set the breakpoint.
    pub fn spec(&self) -> String {
        let at = match self.gate {
            Gate::Arrive => "Walker.walk@arrive",
            Gate::Return => "Walker.walk@return",
            Gate::Call => "Walker.walk@call",
            Gate::Resume => "Walker.walk@resume",
            Gate::Point if self.awaits_in().is_some() => "point(held)",
            Gate::Point => "point(worked)",
        };
        format!("{}:{at}", service(self.holder()))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let through = |path: &[usize]| path.iter().map(|one| service(*one)).collect::<String>();
        let Self { kind, held_ms, stopped_ms, fails, .. } = self;
        let (path, scope) =
            (through(&self.path), if self.holds_call_only { " (call)" } else { "" });
        write!(f, "held through {path} at {}{scope} for {held_ms} ms, then {kind}", self.spec())?;
        match kind {
            Kind::ConnectionHalfOpen => write!(f, " {fails:?}")?,
            Kind::CentralSlow | Kind::ServiceStopped | Kind::Strangers => {
                write!(f, " for {stopped_ms} ms")?;
            }
            _ => {}
        }
        if kind.is_of_the_program() {
            write!(f, " of {}", service(self.target))?;
        }
        self.others
            .iter()
            .try_for_each(|call| write!(f, "; {} through {}", call.name, through(&call.path)))
    }
}

/// The name of a service.
pub fn service(index: usize) -> String {
    ["a", "b", "c", "d"][index].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_follows_from_its_seed() {
        for number in 0..200 {
            assert_eq!(Schedule::new(7, number), Schedule::new(7, number));
        }
        let differ = |number: &u64| Schedule::new(7, *number) != Schedule::new(8, *number);
        assert!((0..200).filter(differ).count() > 190);
    }

    #[test]
    fn every_kind_occurs_and_calls_avoid_who_is_gone() {
        let all = Kind::ALL.len() as u64;
        for number in 0..20 * all {
            let schedule = Schedule::new(1, number);
            assert_eq!(schedule.acts[0].kind, Kind::ALL[(number % all) as usize]);
            for act in &schedule.acts {
                assert!(act.path.contains(&act.target) && act.path.contains(&act.holder()));
                for call in act.others.iter().filter(|call| call.name != "behind") {
                    assert!(!call.path.contains(&act.target), "{act:?}");
                }
            }
        }
    }

    #[test]
    fn many_are_held_for_longer_than_their_deadline() {
        let acts: Vec<Act> = (0..300).flat_map(|number| Schedule::new(1, number).acts).collect();
        let long = acts.iter().filter(|act| act.held_ms > DEADLINE_MS).count();
        assert!(long * 4 > acts.len() && long * 3 < acts.len() * 2, "{long} of {}", acts.len());
    }
}

//! Random programs and scenarios, as a function of a seed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ddbx_protocol::{Mode, RpcEvent, Safeguard, Scope};
use fastrand::Rng;

use super::program::{Nanos, Op, Process, Program, Root};
use super::scenario::{BreakAt, Fault, FaultKind, Sabotage, Scenario};

const MICRO: Nanos = 1_000;
const MILLI: Nanos = 1_000 * MICRO;

/// What is asked for, beyond the seed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many processes; random if not given.
    pub processes: Option<usize>,
    /// Whether things go wrong.
    pub faults: bool,
    /// How the rule is applied; by permits if not given.
    pub mode: Option<Mode>,
    /// How long debugger messages take; none in half of the runs if not given.
    pub latency: Option<RangeInclusive<Nanos>>,
    /// Which clause of the rule is missing.
    pub sabotage: Option<Safeguard>,
}

impl Options {
    /// The command that runs one seed again.
    pub fn command(&self, seed: u64) -> String {
        let mut command = "cargo run --release -p ddbx-tests --bin simulate --".to_owned();
        command += &format!(" --seeds {seed}..{}", seed + 1);
        if self.faults {
            command += " --faults";
        }
        if self.mode == Some(Mode::Ask) {
            command += " --mode ask";
        }
        if let Some(processes) = self.processes {
            command += &format!(" --processes {processes}");
        }
        if let Some(latency) = &self.latency {
            command += &format!(" --latency {}ns..{}ns", latency.start(), latency.end());
        }
        command
    }
}

/// What a program is made of.
struct Features {
    deadlines: bool,
    sleeps: bool,
    leases: bool,
    branches: bool,
    races: bool,
    locks: bool,
    spawns: bool,
    single_threaded: bool,
    outside: bool,
    late: bool,
    callbacks: bool,
    /// All processes are clients of one server and of nobody else.
    hub: bool,
    grain: Nanos,
}

/// The program and the scenario of a seed.
pub fn generate(seed: u64, options: &Options) -> (Program, Scenario) {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xddb);
    let features = Features::pick(&mut rng);
    let most = if features.hub { 3 } else { 6 };
    let processes = options.processes.unwrap_or_else(|| rng.usize(2..=most));
    let callees = callees(&mut rng, &features, processes);
    let program = Maker { rng: &mut rng, features: &features, processes, callees }.program();
    let scenario = scenario(seed, options, &program, &features, &mut rng);
    (program, scenario)
}

impl Features {
    fn pick(rng: &mut Rng) -> Self {
        let none = Self {
            deadlines: false,
            sleeps: false,
            leases: false,
            branches: false,
            races: false,
            locks: false,
            spawns: false,
            single_threaded: false,
            outside: false,
            late: false,
            callbacks: false,
            hub: false,
            grain: 1,
        };
        match rng.u8(0..14) {
            // Plain nested calls: comparable with Algorithm D offline.
            0 | 1 => Self { callbacks: rng.bool(), ..none },
            // Ties everywhere, and nothing that would depend on who wins them.
            2 => Self { grain: 100 * MICRO, branches: rng.bool(), callbacks: rng.bool(), ..none },
            3 | 4 => Self { deadlines: true, sleeps: true, leases: true, callbacks: true, ..none },
            5 => Self { branches: true, races: true, sleeps: true, deadlines: true, ..none },
            6 | 7 => Self { locks: true, single_threaded: true, branches: rng.bool(), ..none },
            8 => Self { outside: true, late: true, deadlines: rng.bool(), ..none },
            // Who queues for a server has nobody else in common with whom it
            // queues behind.
            9 | 10 => {
                let single_threaded = rng.bool();
                Self { hub: true, single_threaded, deadlines: !single_threaded, ..none }
            }
            _ => {
                let locks = rng.bool();
                Self {
                    deadlines: rng.bool(),
                    sleeps: rng.bool(),
                    leases: rng.bool(),
                    branches: rng.bool(),
                    races: rng.bool(),
                    locks,
                    spawns: rng.bool(),
                    single_threaded: locks && rng.bool(),
                    outside: rng.u8(0..3) == 0,
                    late: rng.u8(0..4) == 0,
                    callbacks: !locks && rng.bool(),
                    hub: false,
                    grain: 1,
                }
            }
        }
    }
}

struct Maker<'a> {
    rng: &'a mut Rng,
    features: &'a Features,
    processes: usize,
    /// Whom each process may call; the last is for who joins late.
    callees: Vec<Vec<usize>>,
}

/// Few connections in most programs: then many strands do not concern each other
/// directly, and delays go round corners. Without callbacks, only upwards.
fn callees(rng: &mut Rng, features: &Features, processes: usize) -> Vec<Vec<usize>> {
    let most = if rng.u8(0..3) == 0 { processes } else { rng.usize(1..=2) };
    let mut all = Vec::new();
    if features.hub {
        let clients = vec![vec![processes - 1]; processes - 1];
        return clients.into_iter().chain([Vec::new(), vec![processes - 1]]).collect();
    }
    for process in 0..=processes {
        let first = if features.callbacks || process == processes { 0 } else { process + 1 };
        let mut others: Vec<usize> = (first..processes).filter(|p| *p != process).collect();
        rng.shuffle(&mut others);
        others.truncate(most);
        all.push(others);
    }
    all
}

/// Methods call only methods of higher levels, so that calls end.
const LEVELS: usize = 3;

impl Maker<'_> {
    fn program(&mut self) -> Program {
        let mut program = Program::default();
        for process in 0..self.processes {
            let methods = (0..LEVELS).map(|level| self.body(process, level + 1, 3)).collect();
            let is_hub = self.features.hub && process + 1 == self.processes;
            let single_threaded = self.features.single_threaded && (is_hub || self.rng.bool());
            program.processes.push(Process { single_threaded, joins_at: None, methods });
        }
        let roots = self.rng.usize(2..=if self.features.hub { 3 } else { 5 });
        for _ in 0..roots {
            // Low processes are clients, high ones servers, mostly.
            let process = self.rng.usize(..self.processes).min(self.rng.usize(..self.processes));
            let is_outside = self.features.outside && self.rng.bool();
            let body = self.body(process, 0, 4);
            // Some come from outside when holds are over.
            let latest = if is_outside { 80 * MILLI } else { 10 * MILLI };
            let starts_at = self.time(0..=latest);
            program.roots.push(Root { process, starts_at, is_outside, body });
        }
        for process in 0..self.processes {
            if self.rng.u8(0..4) == 0 || self.features.hub {
                program.roots.push(self.ticker(process));
            }
        }
        if self.features.late {
            self.add_late_joiner(&mut program);
        }
        program.connects_late = self.features.late && self.rng.bool();
        program
    }

    /// A control that stays in its process and has many events: whoever comes
    /// late to the process, comes late among these.
    fn ticker(&mut self, process: usize) -> Root {
        let mut body = Vec::new();
        for _ in 0..self.rng.usize(4..=16) {
            body.push(Op::Work(self.time(200 * MICRO..=1_500 * MICRO)));
            body.push(Op::Point);
        }
        Root { process, starts_at: self.time(0..=3 * MILLI), is_outside: false, body }
    }

    /// A process that comes late, as a client of the others.
    fn add_late_joiner(&mut self, program: &mut Program) {
        let process = program.processes.len();
        let joins_at = self.time(5 * MILLI..=40 * MILLI);
        program.processes.push(Process { joins_at: Some(joins_at), ..Process::default() });
        let body = self.body(process, 0, 4);
        let starts_at = joins_at + MILLI;
        program.roots.push(Root { process, starts_at, is_outside: true, body });
    }

    fn body(&mut self, process: usize, level: usize, most: usize) -> Vec<Op> {
        let mut body = Vec::new();
        let slow = self.features.hub && self.features.deadlines && level > 0;
        let longest = if slow { 6 * MILLI } else { 1_500 * MICRO };
        for _ in 0..self.rng.usize(1..=most) {
            body.push(Op::Work(self.time(10 * MICRO..=longest)));
            body.push(self.op(process, level, 2));
        }
        if self.rng.bool() {
            body.push(Op::Work(self.time(10 * MICRO..=500 * MICRO)));
        }
        body
    }

    fn op(&mut self, process: usize, level: usize, depth: usize) -> Op {
        let features = self.features;
        match self.rng.u8(0..14) {
            0 if features.sleeps => Op::Sleep(self.time(100 * MICRO..=3 * MILLI)),
            1 if features.leases => {
                Op::Renew { lease: self.rng.usize(..2), length: self.time(MILLI..=6 * MILLI) }
            }
            2 | 3 if features.branches && depth > 0 => {
                Op::Both(self.inner(process, level, depth), self.inner(process, level, depth))
            }
            4 | 5 if features.races && depth > 0 => {
                let (mut a, mut b) =
                    (self.inner(process, level, depth), self.inner(process, level, depth));
                // What ends a race must be a gated event, or nothing orders it.
                for side in [&mut a, &mut b] {
                    let last = self.call(process, level).unwrap_or(Op::Point);
                    side.push(last);
                }
                Op::First(a, b)
            }
            6 | 7 if features.locks && depth > 0 => {
                // Inner locks have lower numbers: no cycles.
                Op::Locked(depth - 1, self.inner_without_branches(process, level, depth))
            }
            8 if features.spawns && depth > 0 => Op::Spawn(self.inner(process, level, 1)),
            9 => Op::Point,
            10 => Op::Work(self.time(10 * MICRO..=800 * MICRO)),
            _ => self.call(process, level).unwrap_or(Op::Point),
        }
    }

    fn inner(&mut self, process: usize, level: usize, depth: usize) -> Vec<Op> {
        if self.rng.u8(0..4) == 0 {
            return vec![Op::Work(self.time(2 * MILLI..=8 * MILLI))];
        }
        let work = Op::Work(self.time(10 * MICRO..=1_500 * MICRO));
        vec![work, self.op(process, level, depth - 1)]
    }

    fn inner_without_branches(&mut self, process: usize, level: usize, depth: usize) -> Vec<Op> {
        let mut body = vec![Op::Work(self.time(10 * MICRO..=1_500 * MICRO))];
        if self.rng.bool() {
            body.extend(self.call(process, level));
        } else if depth > 1 && self.rng.bool() {
            let inner = vec![Op::Work(self.time(10 * MICRO..=500 * MICRO))];
            body.push(Op::Locked(depth - 2, inner));
        }
        body
    }

    /// A call to a higher level.
    fn call(&mut self, process: usize, level: usize) -> Option<Op> {
        if level >= LEVELS {
            return None;
        }
        let callee = *self.rng.choice(&self.callees[process])?;
        let method = self.rng.usize(level..LEVELS);
        let wants_deadline = self.features.deadlines && self.rng.u8(0..3) > 0;
        let longest = if self.features.hub { 4 * MILLI } else { 12 * MILLI };
        let deadline = wants_deadline.then(|| self.time(MILLI..=longest));
        Some(Op::Call { process: callee, method, deadline })
    }

    fn time(&mut self, range: RangeInclusive<Nanos>) -> Nanos {
        let grain = self.features.grain;
        let (low, high) = (range.start().div_ceil(grain), range.end() / grain);
        self.rng.u64(low..=high.max(low)).max(1) * grain
    }
}

fn scenario(
    seed: u64,
    options: &Options,
    program: &Program,
    features: &Features,
    rng: &mut Rng,
) -> Scenario {
    let faults_wanted = options.faults || options.sabotage == Some(Safeguard::DelaysKeptOnLoss);
    let processes = program.processes.len();
    let hold_most = if faults_wanted && rng.bool() { 8_000 * MILLI } else { 30 * MILLI };
    let plain = program.is_plain();
    let breakpoints = (0..rng.usize(1..=4))
        .map(|_| BreakAt {
            process: if features.hub { processes - 1 } else { rng.usize(..processes) },
            event: *rng
                .choice(&[
                    Some(RpcEvent::Call),
                    Some(RpcEvent::Arrive),
                    Some(RpcEvent::Arrive),
                    Some(RpcEvent::Return),
                    Some(RpcEvent::Resume),
                    None,
                ])
                .unwrap_or(&None),
            scope: if plain || rng.bool() { Scope::Call } else { Scope::Process },
            ignore: rng.u32(0..4),
            once: rng.u8(0..4) > 0,
            hold: (rng.u64(MILLI..=hold_most) / features.grain).max(1) * features.grain,
        })
        .collect();
    let latency = options.latency.clone().unwrap_or_else(|| {
        let most = if rng.bool() && features.grain == 1 { rng.u64(1..=50) * MICRO } else { 0 };
        0..=most
    });
    let pauses = if !plain && rng.u8(0..6) == 0 {
        let from = rng.u64(MILLI..=10 * MILLI);
        vec![(rng.usize(..processes), from, rng.u64(MILLI..=hold_most))]
    } else {
        Vec::new()
    };
    let forced = !plain && options.sabotage.is_none() && rng.u8(0..12) == 0;
    let forces = if forced { vec![rng.u64(4 * MILLI..=20 * MILLI)] } else { Vec::new() };
    let faults = if faults_wanted {
        (0..rng.usize(1..=3)).map(|_| fault(rng, processes)).collect()
    } else {
        Vec::new()
    };
    Scenario {
        seed,
        mode: options.mode.unwrap_or(Mode::Permit),
        latency,
        // Where ties are frequent, all messages take equally long: else who wins a
        // tie on a connection would decide when the other arrives.
        network: if features.grain > 1 {
            200 * MICRO..=200 * MICRO
        } else {
            50 * MICRO..=500 * MICRO
        },
        grain: features.grain,
        breakpoints,
        pauses,
        forces,
        faults,
        sabotage: Sabotage(options.sabotage),
        starts: BTreeMap::new(),
    }
}

fn fault(rng: &mut Rng, processes: usize) -> Fault {
    let at = rng.u64(0..=40 * MILLI);
    let process = rng.usize(..processes);
    let back = rng.u64(MILLI..=100 * MILLI);
    let kind = match rng.u8(0..6) {
        0 => FaultKind::Crash(process),
        1 => FaultKind::Cut(process, back),
        2 => FaultKind::HalfOpen(process, back),
        3 => FaultKind::Stall(rng.u64(MILLI..=1_500 * MILLI)),
        _ => FaultKind::CentralCrash(rng.u64(MILLI..=3_000 * MILLI)),
    };
    Fault { at, kind }
}

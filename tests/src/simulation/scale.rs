//! What a hold costs when most processes have nothing to do with it.

use std::collections::BTreeMap;

use ddbx_protocol::{Mode, RpcEvent, Scope};

use super::program::{Op, Process, Program, Root};
use super::scenario::{BreakAt, Sabotage, Scenario};
use super::trace::{Trace, What};
use super::world::run;

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000 * MICRO;

/// A run of many processes, of which few are concerned.
pub struct Scale {
    /// How many processes there are.
    pub processes: usize,
    /// How many RPCs there were.
    pub rpcs: usize,
    /// How many processes heard anything from the debugger.
    pub heard: usize,
    /// Debugger messages by kind.
    pub messages: BTreeMap<&'static str, u64>,
    /// The same without any hold.
    pub steady: BTreeMap<&'static str, u64>,
}

/// Five processes in a chain, each calling the next, one of them held once; and
/// as many more, up to `processes`, in chains of five of their own.
pub fn measure(processes: usize, concerned: usize) -> Scale {
    let program = chains(processes, concerned);
    let scenario = Scenario {
        seed: 1,
        mode: Mode::Permit,
        latency: 0..=20 * MICRO,
        network: 100 * MICRO..=200 * MICRO,
        grain: 1,
        breakpoints: vec![BreakAt {
            process: concerned / 2,
            event: Some(RpcEvent::Arrive),
            scope: Scope::Process,
            ignore: 1,
            once: true,
            hold: 50 * MILLI,
        }],
        pauses: Vec::new(),
        forces: Vec::new(),
        faults: Vec::new(),
        sabotage: Sabotage::default(),
        starts: BTreeMap::new(),
    };
    let held = run(&program, &scenario);
    let steady = run(&program, &scenario.undisturbed(BTreeMap::new()));
    let rpcs = |trace: &Trace| trace.events.iter().filter(|e| e.what == What::CallSent).count();
    Scale {
        processes,
        rpcs: rpcs(&steady),
        heard: held.messages_by_process.len(),
        messages: held.messages,
        steady: steady.messages,
    }
}

fn chains(processes: usize, length: usize) -> Program {
    let mut program = Program::default();
    for process in 0..processes {
        let place = process % length;
        let is_last = place + 1 == length || process + 1 == processes;
        let mut method = vec![Op::Work(300 * MICRO + process as u64)];
        if !is_last {
            method.push(Op::Call { process: process + 1, method: 0, deadline: Some(20 * MILLI) });
        }
        program.processes.push(Process { methods: vec![method.clone()], ..Process::default() });
        if place == 0 {
            for round in 0..4 {
                let starts_at = (round + 1) * MILLI + process as u64;
                let body = method.clone();
                program.roots.push(Root { process, starts_at, is_outside: false, body });
            }
        }
    }
    program
}

//! What must hold for a delayed execution, straight from the definitions: no
//! code is shared with the algorithms.

use std::collections::BTreeSet;

use ddbx_central::logic::algorithm_d::{ExecutionIndex, Plan, Program, Ticks};

/// An execution with its delays, in the terms of the definitions.
#[derive(Clone)]
pub struct Delayed {
    pub process: Vec<u32>,
    pub servers: BTreeSet<u32>,
    /// Undelayed start of each fragment, and the end of the last.
    pub st: Vec<Ticks>,
    pub breakpoint: Vec<Ticks>,
    pub propagated: Vec<Ticks>,
}

impl Delayed {
    pub fn len(&self) -> usize {
        self.process.len()
    }

    /// C: all delay up to the end of fragment `j`.
    pub fn delay_after(&self, j: usize) -> Ticks {
        (0..=j).map(|u| self.breakpoint[u] + self.propagated[u]).sum()
    }

    fn delay_before(&self, j: usize) -> Ticks {
        if j == 0 { 0 } else { self.delay_after(j - 1) }
    }

    /// Delayed start.
    pub fn sb(&self, j: usize) -> Ticks {
        self.st[j] + self.delay_before(j)
    }

    /// Delayed end: with everything appended at the end of the fragment.
    pub fn end(&self, j: usize) -> Ticks {
        self.st[j + 1] + self.delay_after(j)
    }

    pub fn rpc(&self, j: usize) -> bool {
        j > 0 && self.process[j] != self.process[j - 1]
    }
}

pub fn delayed(program: &Program, plan: &Plan) -> Vec<Delayed> {
    let executions = (0..).map(ExecutionIndex).zip(program.executions());
    executions
        .map(|(index, execution)| {
            let process: Vec<u32> = execution.fragments.iter().map(|f| f.process.0).collect();
            let mut st = vec![0];
            for fragment in &execution.fragments {
                st.push(st[st.len() - 1] + fragment.time);
            }
            Delayed {
                servers: process.iter().copied().collect(),
                process,
                st,
                breakpoint: execution.fragments.iter().map(|f| f.breakpoint).collect(),
                propagated: plan.fragments(program, index).map(|f| f.propagated).collect(),
            }
        })
        .collect()
}

/// The system that `virtual` solves: the first violated constraint, if any.
pub fn violated(all: &[Delayed], ties: bool) -> Option<String> {
    for (i, a) in all.iter().enumerate() {
        for (k, b) in all.iter().enumerate().filter(|(k, _)| *k != i) {
            for l in (0..b.len()).filter(|&l| b.rpc(l) && a.servers.contains(&b.process[l])) {
                for f in 0..a.len() {
                    let bound = a.st[f + 1] < b.st[l] || ties && a.st[f + 1] == b.st[l];
                    if bound && a.delay_after(f) > b.delay_before(l) {
                        return Some(format!(
                            "E{}#{} binds E{}'s entry #{}",
                            i + 1,
                            f + 1,
                            k + 1,
                            l + 1
                        ));
                    }
                }
            }
        }
    }
    None
}

/// Order of starts and mutual exclusion, for fragments entered by RPC.
pub fn order_broken(all: &[Delayed]) -> Option<String> {
    for (i, a) in all.iter().enumerate() {
        for (k, b) in all.iter().enumerate().filter(|(k, _)| *k != i) {
            for l in (0..b.len()).filter(|&l| b.rpc(l)) {
                for f in (0..a.len()).filter(|&f| a.process[f] == b.process[l]) {
                    let (before, after) = (a.st[f].cmp(&b.st[l]), a.sb(f).cmp(&b.sb(l)));
                    let both_enter_by_rpc = a.rpc(f);
                    let ordered = match before {
                        std::cmp::Ordering::Less => after.is_lt(),
                        std::cmp::Ordering::Equal if both_enter_by_rpc => after.is_eq(),
                        std::cmp::Ordering::Equal => after.is_le(),
                        std::cmp::Ordering::Greater => true,
                    };
                    let excluded = a.st[f + 1] > b.st[l] || a.end(f) <= b.sb(l);
                    if !ordered || !excluded {
                        let what = if ordered { "mutual exclusion" } else { "order" };
                        return Some(format!(
                            "{what} of E{}#{} and E{}#{}",
                            i + 1,
                            f + 1,
                            k + 1,
                            l + 1
                        ));
                    }
                }
            }
        }
    }
    None
}

//! The corrected algorithm as one sweep over the fragment ends.
//!
//! Walk through undelayed time. Keep, for every execution, the delay `c` that
//! it carries so far, and for every process `p` the greatest `c` of any
//! execution that uses `p`: a running maximum, because an execution that is
//! past an instant still binds whoever enters after it. An execution that
//! enters `p` by RPC takes over `p`'s maximum. That is all.
//!
//! Only ties need care. At one instant, first all breakpoints that end there
//! count. Then entries are settled in descending order of their process's
//! maximum: settling an entry can raise the maximum of the entering execution's
//! other processes, but never above the one just settled, so no settled process
//! is raised again (the argument of Dijkstra's algorithm).
//!
//! The maximum of `p` includes the entering execution's own delay, since it
//! uses `p`; so after an entry its delay *equals* the maximum.

use std::collections::BinaryHeap;

use super::outcome::{Plan, PlanError};
use super::program::{ExecutionIndex, FragmentIndex, ProcessIndex, Program, Ticks, sum};

/// `Mode::Virtual`: ties count.
pub(super) fn virtual_ties(program: &Program) -> Result<Plan, PlanError> {
    if let Some(error) = PlanError::zero_time(program) {
        return Err(error);
    }
    let mut sweep = Sweep::new(program);
    let mut entries: Vec<Entry> = Vec::new();
    let mut order: BinaryHeap<(Ticks, ProcessIndex)> = BinaryHeap::new();
    for instant in fragment_ends(program).chunk_by(|a, b| a.time == b.time) {
        for &end in instant {
            if sweep.suspend(end)? {
                sweep.publish(end.execution, end.fragment, |_, _| ());
            }
            entries.extend(sweep.entry_after(end));
        }
        // Most instants have one entry; only ties need the order.
        if let [entry] = entries[..] {
            if sweep.enter(entry) {
                sweep.publish(entry.execution, entry.end, |_, _| ());
            }
        } else {
            entries.sort_unstable_by_key(|entry| entry.process);
            order.extend(
                entries
                    .chunk_by(|a, b| a.process == b.process)
                    .map(|group| (sweep.greatest(group[0].process).delay, group[0].process)),
            );
            while let Some((delay, process)) = order.pop() {
                // A process is pushed again when its maximum rises: older
                // pushes, and repetitions after it was settled, are stale. A
                // settled process is never raised, so settling twice changes
                // nothing.
                if delay < sweep.greatest(process).delay {
                    continue;
                }
                let first = entries.partition_point(|entry| entry.process < process);
                let group = entries[first..].iter().take_while(|entry| entry.process == process);
                for &entry in group {
                    if sweep.enter(entry) {
                        sweep.publish(entry.execution, entry.end, |raised, delay| {
                            order.push((delay, raised));
                        });
                    }
                }
            }
        }
        entries.clear();
    }
    sweep.plan.checked(program)
}

/// `Mode::VirtualStrict`: what happens at one instant does not count for the
/// entries at that instant.
pub(super) fn virtual_strict(program: &Program) -> Result<Plan, PlanError> {
    let mut sweep = Sweep::new(program);
    let mut grown: Vec<End> = Vec::new();
    for instant in fragment_ends(program).chunk_by(|a, b| a.time == b.time) {
        for &end in instant {
            let suspended = sweep.suspend(end)?;
            let waited = sweep.entry_after(end).is_some_and(|entry| sweep.enter(entry));
            if suspended || waited {
                grown.push(end);
            }
        }
        for end in grown.drain(..) {
            sweep.publish(end.execution, end.fragment, |_, _| ());
        }
    }
    sweep.plan.checked(program)
}

/// The end of a fragment in undelayed time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    time: Ticks,
    execution: u32,
    fragment: u32,
}

/// All fragment ends by time; at one time in the order of the input, so that
/// fragments of one execution that take no time stay in order.
fn fragment_ends(program: &Program) -> Vec<End> {
    let mut ends = Vec::with_capacity(program.fragment_count());
    for (execution, chain) in program.executions.iter().enumerate() {
        let mut time = 0;
        for (fragment, each) in chain.fragments.iter().enumerate() {
            time += each.time;
            ends.push(End { time, execution: execution as u32, fragment: fragment as u32 });
        }
    }
    ends.sort_unstable();
    ends
}

/// An execution leaves the fragment `end` and enters `process` by RPC.
#[derive(Clone, Copy)]
struct Entry {
    process: ProcessIndex,
    execution: u32,
    end: u32,
}

/// The greatest delay of any execution that uses a process, and where that
/// execution reached it.
#[derive(Clone, Copy)]
struct Greatest {
    delay: Ticks,
    execution: u32,
    fragment: u32,
}

struct Sweep<'a> {
    program: &'a Program,
    plan: Plan,
    /// `c` of every execution.
    carried: Vec<Ticks>,
    servers: Vec<Vec<ProcessIndex>>,
    greatest: Vec<Greatest>,
}

impl<'a> Sweep<'a> {
    fn new(program: &'a Program) -> Self {
        let none = Greatest { delay: 0, execution: u32::MAX, fragment: u32::MAX };
        Self {
            program,
            plan: Plan::undelayed(program),
            carried: vec![0; program.executions.len()],
            servers: program.executions.iter().map(|e| e.servers()).collect(),
            greatest: vec![none; program.process_count()],
        }
    }

    fn greatest(&self, process: ProcessIndex) -> Greatest {
        self.greatest[process.0 as usize]
    }

    /// Adds the breakpoint at this end, if any; true if there is one.
    fn suspend(&mut self, end: End) -> Result<bool, PlanError> {
        let (execution, fragment) = (end.execution as usize, end.fragment as usize);
        let breakpoint = self.program.executions[execution].fragments[fragment].breakpoint;
        let carried = &mut self.carried[execution];
        *carried = sum(*carried, breakpoint)
            .ok_or_else(|| PlanError::overflow(self.program, execution, fragment))?;
        Ok(breakpoint > 0)
    }

    fn entry_after(&self, end: End) -> Option<Entry> {
        let execution = &self.program.executions[end.execution as usize];
        let next = end.fragment as usize + 1;
        (next < execution.fragments.len() && execution.enters_by_rpc(next)).then(|| Entry {
            process: execution.fragments[next].process,
            execution: end.execution,
            end: end.fragment,
        })
    }

    /// The execution waits until it carries the maximum of the process; true
    /// if it had to.
    fn enter(&mut self, entry: Entry) -> bool {
        let greatest = self.greatest(entry.process);
        let carried = &mut self.carried[entry.execution as usize];
        let wait = greatest.delay.saturating_sub(*carried);
        if wait > 0 {
            let cause = (ExecutionIndex(greatest.execution), FragmentIndex(greatest.fragment));
            self.plan.delay(entry.execution as usize, entry.end as usize, wait, cause);
            *carried = greatest.delay;
        }
        wait > 0
    }

    /// Raises the maxima of the execution's processes to what it carries at the
    /// end of `fragment`, and tells of each that rose.
    fn publish(
        &mut self,
        execution: u32,
        fragment: u32,
        mut raised: impl FnMut(ProcessIndex, Ticks),
    ) {
        let delay = self.carried[execution as usize];
        for &process in &self.servers[execution as usize] {
            let greatest = &mut self.greatest[process.0 as usize];
            if greatest.delay < delay {
                *greatest = Greatest { delay, execution, fragment };
                raised(process, delay);
            }
        }
    }
}

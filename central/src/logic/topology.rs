//! Who can call whom, and so whom a strand may still have an effect on.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{ProcessIndex, Safeguard, Safeguards, Stack};

/// A set of processes.
pub type Processes = BTreeSet<ProcessIndex>;

/// The connections of a session. They stay when a process is cut off: it may come back, and
/// those who call it do not announce that again. Of very many that have left, the first are
/// forgotten; one that comes back after that tells of its connections itself.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    callees: BTreeMap<ProcessIndex, Processes>,
}

impl Topology {
    /// `from` can call `to` from now on; true if it could not before.
    pub fn connect(&mut self, from: ProcessIndex, to: ProcessIndex) -> bool {
        self.callees.entry(from).or_default().insert(to)
    }

    /// A process is not heard of any more.
    pub fn forget(&mut self, process: ProcessIndex) {
        self.callees.remove(&process);
        self.callees.retain(|_, callees| {
            callees.remove(&process);
            !callees.is_empty()
        });
    }

    /// Whom a process can call.
    pub fn callees(&self, process: ProcessIndex) -> impl Iterator<Item = ProcessIndex> {
        self.callees.get(&process).into_iter().flatten().copied()
    }

    /// Where a strand with this call stack may still have an effect: the stack
    /// itself, to which it returns, and all that these processes reach by calls.
    pub fn reach(&self, stack: &Stack, safeguards: &impl Safeguards) -> Processes {
        if safeguards.on(Safeguard::BeingInCounts) {
            return self.reachable(stack.0.iter().copied());
        }
        let callees = stack.top().and_then(|top| self.callees.get(&top));
        let mut reach = self.reachable(callees.into_iter().flatten().copied());
        for process in stack.0.iter() {
            reach.remove(process);
        }
        reach
    }

    fn reachable(&self, from: impl IntoIterator<Item = ProcessIndex>) -> Processes {
        let mut reached = Processes::new();
        let mut to_visit: Vec<ProcessIndex> = from.into_iter().collect();
        while let Some(process) = to_visit.pop() {
            if reached.insert(process) {
                to_visit.extend(self.callees.get(&process).into_iter().flatten());
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::AllOn;

    use super::*;

    #[test]
    fn reach_is_the_stack_and_all_below_it() {
        let p = ProcessIndex;
        let mut topology = Topology::default();
        for (from, to) in [(0, 1), (1, 2), (2, 1), (3, 0)] {
            assert!(topology.connect(p(from), p(to)));
        }
        assert!(!topology.connect(p(0), p(1)));
        let reach = |topology: &Topology, home| topology.reach(&Stack::home(p(home)), &AllOn);
        assert_eq!(reach(&topology, 0), Processes::from([p(0), p(1), p(2)]));
        assert_eq!(reach(&topology, 2), Processes::from([p(1), p(2)]), "cycles end");
        let stack = Stack::home(p(2)).call(p(0));
        assert_eq!(topology.reach(&stack, &AllOn), Processes::from([p(0), p(1), p(2)]));
        topology.forget(p(1));
        assert_eq!(reach(&topology, 0), Processes::from([p(0)]));
        assert_eq!(topology.callees.len(), 1, "who calls nobody any more takes no room");
    }
}

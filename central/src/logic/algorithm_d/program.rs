//! The input: executions, their fragments, and where they are suspended.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use thiserror::Error;

/// Time in whatever unit the input uses.
pub type Ticks = u64;

/// The greatest time that may occur anywhere, given or computed.
pub const TICKS_MAX: Ticks = i64::MAX as u64;

/// An execution, by its place in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutionIndex(pub u32);

/// A fragment of an execution, by its place in it, counted from 0. People count
/// from 1: see [`FragmentIndex::number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FragmentIndex(pub u32);

/// A process, by the order in which names first occur in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessIndex(pub u32);

impl FragmentIndex {
    /// The number that people and files use: the first fragment is 1.
    pub fn number(self) -> usize {
        self.0 as usize + 1
    }
}

/// What an execution does in one process between two RPC boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it runs.
    pub process: ProcessIndex,
    /// How long it runs, without any delay.
    pub time: Ticks,
    /// How long a breakpoint suspends the execution at its end; 0 for none.
    pub breakpoint: Ticks,
}

/// A sequential execution: at least one fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Unique within the program.
    pub name: String,
    /// In the order in which they run.
    pub fragments: Vec<Fragment>,
}

impl Execution {
    /// Whether the fragment at `index` is entered by an RPC call or return.
    pub(super) fn enters_by_rpc(&self, index: usize) -> bool {
        index > 0 && self.fragments[index].process != self.fragments[index - 1].process
    }

    /// The processes of the fragments, sorted, each once.
    pub(super) fn servers(&self) -> Vec<ProcessIndex> {
        let mut servers: Vec<_> = self.fragments.iter().map(|f| f.process).collect();
        servers.sort_unstable();
        servers.dedup();
        servers.shrink_to_fit();
        servers
    }
}

/// A checked program: names are unique, no execution is empty, and every
/// undelayed time fits in [`TICKS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub(super) processes: Vec<String>,
    pub(super) executions: Vec<Execution>,
}

impl Program {
    /// The executions in the order of the input.
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// How many processes there are.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// How many fragments there are in all.
    pub fn fragment_count(&self) -> usize {
        self.executions.iter().map(|e| e.fragments.len()).sum()
    }

    /// The name of a process.
    pub fn process_name(&self, process: ProcessIndex) -> &str {
        &self.processes[process.0 as usize]
    }

    /// An execution.
    pub fn execution(&self, execution: ExecutionIndex) -> &Execution {
        &self.executions[execution.0 as usize]
    }
}

/// Builds a [`Program`], refusing each bad piece as it is given.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    program: Program,
    process_by_name: BTreeMap<String, ProcessIndex>,
    execution_by_name: BTreeMap<String, ExecutionIndex>,
    /// Fragments that already have a breakpoint, even one of length 0.
    planted: std::collections::BTreeSet<(ExecutionIndex, FragmentIndex)>,
}

impl ProgramBuilder {
    /// Adds an execution as `(process, time)` fragments.
    pub fn execution<P: AsRef<str>>(
        &mut self,
        name: &str,
        fragments: impl IntoIterator<Item = (P, Ticks)>,
    ) -> Result<ExecutionIndex, ProgramError> {
        let index = ExecutionIndex(count(self.program.executions.len())?);
        match self.execution_by_name.entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(ProgramError::DuplicateExecution(name.to_owned())),
            Entry::Vacant(vacant) => vacant.insert(index),
        };
        let mut end: Ticks = 0;
        let mut checked = Vec::new();
        for (process, time) in fragments {
            let fragment = FragmentIndex(count(checked.len())?);
            end = sum(end, time).ok_or_else(|| ProgramError::TimeOverflow {
                execution: name.to_owned(),
                fragment: fragment.number(),
            })?;
            let process = self.process(process.as_ref())?;
            checked.push(Fragment { process, time, breakpoint: 0 });
        }
        if checked.is_empty() {
            return Err(ProgramError::EmptyExecution(name.to_owned()));
        }
        checked.shrink_to_fit();
        self.program.executions.push(Execution { name: name.to_owned(), fragments: checked });
        Ok(index)
    }

    /// Suspends `execution` for `suspend` at the end of fragment `number`,
    /// counted from 1.
    pub fn breakpoint(
        &mut self,
        execution: &str,
        number: u64,
        suspend: Ticks,
    ) -> Result<(), ProgramError> {
        let Some(&index) = self.execution_by_name.get(execution) else {
            return Err(ProgramError::UnknownExecution(execution.to_owned()));
        };
        let fragments = &mut self.program.executions[index.0 as usize].fragments;
        let slot = number.checked_sub(1).and_then(|zero_based| u32::try_from(zero_based).ok());
        let Some((fragment, slot)) =
            slot.and_then(|slot| Some((fragments.get_mut(slot as usize)?, slot)))
        else {
            return Err(ProgramError::NoSuchFragment {
                execution: execution.to_owned(),
                number,
                last: fragments.len(),
            });
        };
        if suspend > TICKS_MAX {
            return Err(ProgramError::SuspendOverflow { execution: execution.to_owned(), number });
        }
        if !self.planted.insert((index, FragmentIndex(slot))) {
            return Err(ProgramError::SecondBreakpoint { execution: execution.to_owned(), number });
        }
        fragment.breakpoint = suspend;
        Ok(())
    }

    /// The finished program.
    pub fn build(self) -> Program {
        self.program
    }

    fn process(&mut self, name: &str) -> Result<ProcessIndex, ProgramError> {
        if let Some(&known) = self.process_by_name.get(name) {
            return Ok(known);
        }
        let index = ProcessIndex(count(self.program.processes.len())?);
        self.program.processes.push(name.to_owned());
        self.process_by_name.insert(name.to_owned(), index);
        Ok(index)
    }
}

/// Why an input is not a program. Execution names are quoted as they are:
/// whoever prints them to a terminal strips control characters.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    /// Two executions have the same name.
    #[error("two executions are called \"{0}\"; give each its own name")]
    DuplicateExecution(String),
    /// An execution has no fragment.
    #[error("execution \"{0}\" has no fragments; it needs at least one")]
    EmptyExecution(String),
    /// A time, or the sum of an execution's times, is over the limit.
    #[error("execution \"{execution}\" fragment {fragment}: time passes 2^63-1 there")]
    TimeOverflow {
        /// The execution's name.
        execution: String,
        /// Counted from 1.
        fragment: usize,
    },
    /// A breakpoint names an execution that is not there.
    #[error("a breakpoint names execution \"{0}\", which is not in the input")]
    UnknownExecution(String),
    /// A breakpoint names a fragment that is not there.
    #[error(
        "a breakpoint names fragment {number} of execution \"{execution}\", which has 1 to {last}"
    )]
    NoSuchFragment {
        /// The execution's name.
        execution: String,
        /// As given.
        number: u64,
        /// The number of the last fragment.
        last: usize,
    },
    /// Two breakpoints on one fragment.
    #[error("execution \"{execution}\" fragment {number} has two breakpoints; give it one")]
    SecondBreakpoint {
        /// The execution's name.
        execution: String,
        /// Counted from 1.
        number: u64,
    },
    /// A suspension is over the limit.
    #[error(
        "the breakpoint on execution \"{execution}\" fragment {number} suspends for more than 2^63-1"
    )]
    SuspendOverflow {
        /// The execution's name.
        execution: String,
        /// Counted from 1.
        number: u64,
    },
    /// More executions, fragments or processes than can be numbered.
    #[error("the input has more than 2^32-1 executions, processes, or fragments in one execution")]
    TooMany,
}

/// Adds two times, or `None` past [`TICKS_MAX`].
pub(super) fn sum(a: Ticks, b: Ticks) -> Option<Ticks> {
    a.checked_add(b).filter(|&total| total <= TICKS_MAX)
}

fn count(len: usize) -> Result<u32, ProgramError> {
    // u32::MAX itself is kept free as a mark for "none".
    u32::try_from(len).ok().filter(|&n| n < u32::MAX).ok_or(ProgramError::TooMany)
}

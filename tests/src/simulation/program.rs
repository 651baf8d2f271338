//! Programs to debug: small scripts of processes that call each other.

use std::collections::BTreeSet;

/// A time or a length of time, in nanoseconds.
pub type Nanos = u64;

/// A whole distributed program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its processes; they are named by their place here.
    pub processes: Vec<Process>,
    /// What starts by itself or from outside.
    pub roots: Vec<Root>,
    /// Whether connections are made at the first call instead of at the start.
    pub connects_late: bool,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Whether it handles one request at a time.
    pub single_threaded: bool,
    /// When it starts, if not with the others.
    pub joins_at: Option<Nanos>,
    /// What it does when called.
    pub methods: Vec<Vec<Op>>,
}

/// A control that is not started by another one.
#[derive(Clone, Debug)]
pub struct Root {
    /// Where.
    pub process: usize,
    /// When.
    pub starts_at: Nanos,
    /// Whether it comes from outside and has no virtual past.
    pub is_outside: bool,
    /// What it does.
    pub body: Vec<Op>,
}

/// One thing a control does.
#[derive(Clone, Debug)]
pub enum Op {
    /// Computes.
    Work(Nanos),
    /// Passes a labelled place.
    Point,
    /// Calls a method and waits for the response.
    Call {
        /// The callee.
        process: usize,
        /// Its method.
        method: usize,
        /// After how long the caller gives up.
        deadline: Option<Nanos>,
    },
    /// Does two things at once and waits for both.
    Both(Vec<Op>, Vec<Op>),
    /// Does two things at once and drops the slower one.
    First(Vec<Op>, Vec<Op>),
    /// Holds a lock of its process.
    Locked(usize, Vec<Op>),
    /// Sleeps.
    Sleep(Nanos),
    /// Arms or renews a lease of its process.
    Renew {
        /// Which.
        lease: usize,
        /// For how long.
        length: Nanos,
    },
    /// Starts another control in its process.
    Spawn(Vec<Op>),
}

impl Op {
    /// The scripts inside this one.
    pub fn bodies(&self) -> Vec<&Vec<Op>> {
        match self {
            Self::Both(a, b) | Self::First(a, b) => vec![a, b],
            Self::Locked(_, body) | Self::Spawn(body) => vec![body],
            _ => Vec::new(),
        }
    }
}

/// Calls `visit` for every operation of a script, inner ones included.
pub fn each_op<'a>(script: &'a [Op], visit: &mut impl FnMut(&'a Op)) {
    for op in script {
        visit(op);
        for body in op.bodies() {
            each_op(body, visit);
        }
    }
}

impl Program {
    /// Every script with the process that runs it.
    pub fn scripts(&self) -> impl Iterator<Item = (usize, &Vec<Op>)> {
        let methods = self.processes.iter().enumerate();
        let methods = methods.flat_map(|(p, process)| process.methods.iter().map(move |m| (p, m)));
        methods.chain(self.roots.iter().map(|root| (root.process, &root.body)))
    }

    /// Who calls whom.
    pub fn connections(&self) -> BTreeSet<(usize, usize)> {
        let mut connections = BTreeSet::new();
        for (from, script) in self.scripts() {
            each_op(script, &mut |op| {
                if let Op::Call { process, .. } = op {
                    connections.insert((from, *process));
                }
            });
        }
        connections
    }

    /// Whether any script has an operation like this.
    pub fn any_op(&self, like: impl Fn(&Op) -> bool) -> bool {
        let mut found = false;
        for (_, script) in self.scripts() {
            each_op(script, &mut |op| found |= like(op));
        }
        found
    }

    /// Whether what happens, and not only when, can depend on the order in which
    /// different controls come.
    pub fn depends_on_order(&self) -> bool {
        self.processes.iter().any(|process| process.single_threaded)
            || self.any_op(|op| matches!(op, Op::Locked(..) | Op::Renew { .. } | Op::First(..)))
    }

    /// Whether it is plain nested calls: what Algorithm D offline can express.
    pub fn is_plain(&self) -> bool {
        !self.depends_on_order()
            && !self.connects_late
            && self.roots.iter().all(|root| !root.is_outside)
            && !self.any_op(|op| {
                matches!(op, Op::Both(..) | Op::Sleep(_) | Op::Spawn(_))
                    || matches!(op, Op::Call { deadline: Some(_), .. })
            })
    }
}

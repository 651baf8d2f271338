//! The paper's loop, step by step, for all three modes.
//!
//! Delays are counted in u128: the literal algorithm can pile them up step by
//! step before it is found not to terminate, and only what it ends with has to
//! fit.
//!
//! Names follow the paper: `f` is the front of an execution (the fragment that
//! ends next), `C` is all delay up to the end of a fragment. Fragments count
//! from 0 here. The paper's extra fragment in front of the first never carries
//! a delay, because the first fragment is not entered by an RPC.

use super::Mode;
use super::outcome::{Plan, PlanError};
use super::program::{ExecutionIndex, FragmentIndex, Program, Ticks};

/// Plans `program` by the step-by-step algorithm, whatever the mode. This is the
/// specification that [`plan`](super::plan) is checked against.
pub fn reference(program: &Program, mode: Mode) -> Result<Plan, PlanError> {
    if mode == Mode::Virtual
        && let Some(error) = PlanError::zero_time(program)
    {
        return Err(error);
    }
    let mut steps = Stepper::new(program, mode);
    let step_limit = 100 * (program.fragment_count() as u64 + 1);
    let mut taken = 0;
    while let Some(next) = steps.earliest_front() {
        taken += 1;
        if taken > step_limit {
            return Err(PlanError::Nontermination { steps: taken });
        }
        steps.step(next);
    }
    steps.finish()
}

struct Stepper<'a> {
    program: &'a Program,
    mode: Mode,
    propagated: Vec<Vec<Propagated>>,
    fronts: Vec<Front>,
    /// `uses[p] == steps` marks the processes of the execution being stepped.
    uses: Vec<u64>,
    steps: u64,
}

/// A propagated delay and the latest reason for it.
#[derive(Clone, Copy)]
struct Propagated {
    amount: u128,
    cause: (ExecutionIndex, FragmentIndex),
}

/// How far an execution has come.
struct Front {
    /// The fragment that ends next; one past the last when done.
    f: usize,
    /// Undelayed start of fragment `f`.
    st: Ticks,
    /// C up to the end of the fragment before `f`.
    delay_before: u128,
}

impl<'a> Stepper<'a> {
    fn new(program: &'a Program, mode: Mode) -> Self {
        let front = || Front { f: 0, st: 0, delay_before: 0 };
        let none = Propagated { amount: 0, cause: (ExecutionIndex(0), FragmentIndex(0)) };
        let executions = program.executions.iter();
        Self {
            program,
            mode,
            propagated: executions.map(|e| vec![none; e.fragments.len()]).collect(),
            fronts: program.executions.iter().map(|_| front()).collect(),
            uses: vec![0; program.process_count()],
            steps: 0,
        }
    }

    /// Step 1: the execution whose front fragment ends first; ties by order of input.
    fn earliest_front(&self) -> Option<usize> {
        let pending = (0..self.fronts.len()).filter(|&i| !self.is_done(i));
        pending.min_by_key(|&i| self.front_time(i))
    }

    fn is_done(&self, i: usize) -> bool {
        self.fronts[i].f == self.program.executions[i].fragments.len()
    }

    /// The plan, if all of it fits.
    fn finish(self) -> Result<Plan, PlanError> {
        let mut plan = Plan::undelayed(self.program);
        for (i, fragments) in self.propagated.iter().enumerate() {
            for (f, propagated) in fragments.iter().enumerate().filter(|(_, p)| p.amount > 0) {
                let amount = Ticks::try_from(propagated.amount);
                let amount = amount.map_err(|_| PlanError::overflow(self.program, i, f))?;
                plan.delay(i, f, amount, propagated.cause);
            }
        }
        plan.checked(self.program)
    }

    /// All delay at the end of a fragment.
    fn suspended(&self, i: usize, f: usize) -> u128 {
        let breakpoint = self.program.executions[i].fragments[f].breakpoint;
        u128::from(breakpoint) + self.propagated[i][f].amount
    }

    /// Where the front fragment ends: before its own suspension, and in delayed
    /// time only as the paper has it.
    fn front_time(&self, i: usize) -> u128 {
        let front = &self.fronts[i];
        let undelayed = front.st + self.program.executions[i].fragments[front.f].time;
        match self.mode {
            Mode::Literal => u128::from(undelayed) + front.delay_before,
            Mode::Virtual | Mode::VirtualStrict => u128::from(undelayed),
        }
    }

    fn step(&mut self, i: usize) {
        let program = self.program;
        let front_time = self.front_time(i);
        let f = self.fronts[i].f;
        // Step 2: the delay that the others must not fall short of.
        let total = self.fronts[i].delay_before + self.suspended(i, f);

        self.steps += 1;
        for fragment in &program.executions[i].fragments {
            self.uses[fragment.process.0 as usize] = self.steps;
        }
        let cause = (ExecutionIndex(i as u32), FragmentIndex(f as u32));
        for k in (0..self.fronts.len()).filter(|&k| k != i) {
            if !self.is_done(k) {
                self.propagate(k, front_time, total, cause);
            }
        }
        // Step 4.
        let st = self.fronts[i].st + program.executions[i].fragments[f].time;
        self.fronts[i] = Front { f: f + 1, st, delay_before: total };
    }

    /// Step 3 for execution `k`: wait before the first RPC entry that could
    /// overtake, and take the same amount back from later waits.
    fn propagate(
        &mut self,
        k: usize,
        front_time: u128,
        total: u128,
        cause: (ExecutionIndex, FragmentIndex),
    ) {
        let Some((l, delay)) = self.first_entry_after(k, front_time) else { return };
        let mut owed = total.saturating_sub(delay);
        if owed == 0 {
            return;
        }
        let suspended = self.suspended(k, l - 1);
        let front = &mut self.fronts[k];
        if l == front.f {
            front.f -= 1;
            front.st -= self.program.executions[k].fragments[l - 1].time;
            front.delay_before -= suspended;
        }
        let waits = &mut self.propagated[k];
        waits[l - 1] = Propagated { amount: waits[l - 1].amount + owed, cause };
        for later in &mut waits[l..] {
            let taken = later.amount.min(owed);
            later.amount -= taken;
            owed -= taken;
        }
    }

    /// Step 3a: the first fragment of `k` from its front on that is entered by
    /// an RPC after `front_time` into a process of the stepped execution, and
    /// `k`'s delay at that entry.
    fn first_entry_after(&self, k: usize, front_time: u128) -> Option<(usize, u128)> {
        let execution = &self.program.executions[k];
        let Front { f, mut st, delay_before: mut delay } = self.fronts[k];
        for l in f..execution.fragments.len() {
            let fragment = execution.fragments[l];
            let comes_after = match self.mode {
                Mode::Literal => front_time < u128::from(st) + delay,
                Mode::Virtual => front_time <= u128::from(st),
                Mode::VirtualStrict => front_time < u128::from(st),
            };
            let shared = self.uses[fragment.process.0 as usize] == self.steps;
            if comes_after && shared && execution.enters_by_rpc(l) {
                return Some((l, delay));
            }
            st += fragment.time;
            delay += self.suspended(k, l);
        }
        None
    }
}

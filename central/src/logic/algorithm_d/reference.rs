//! The paper's loop, step by step, for all three modes.
//!
//! Names follow the paper: `f` is the front of an execution (the fragment that
//! ends next), `C` is all delay up to the end of a fragment. Fragments count
//! from 0 here. The paper's extra fragment in front of the first never carries
//! a delay, because the first fragment is not entered by an RPC.

use super::Mode;
use super::outcome::{Plan, PlanError};
use super::program::{ExecutionIndex, FragmentIndex, Program, Ticks, sum};

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
        steps.step(next)?;
    }
    steps.plan.checked(program)
}

struct Stepper<'a> {
    program: &'a Program,
    mode: Mode,
    plan: Plan,
    fronts: Vec<Front>,
    /// `uses[p] == steps` marks the processes of the execution being stepped.
    uses: Vec<u64>,
    steps: u64,
}

/// How far an execution has come.
struct Front {
    /// The fragment that ends next; one past the last when done.
    f: usize,
    /// Undelayed start of fragment `f`.
    st: Ticks,
    /// C up to the end of the fragment before `f`.
    delay_before: Ticks,
}

impl<'a> Stepper<'a> {
    fn new(program: &'a Program, mode: Mode) -> Self {
        let front = || Front { f: 0, st: 0, delay_before: 0 };
        Self {
            program,
            mode,
            plan: Plan::undelayed(program),
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

    /// Where the front fragment ends: before its own suspension, and in delayed
    /// time only as the paper has it. A sum of two checked times fits in a u64.
    fn front_time(&self, i: usize) -> Ticks {
        let front = &self.fronts[i];
        let undelayed = front.st + self.program.executions[i].fragments[front.f].time;
        match self.mode {
            Mode::Literal => undelayed + front.delay_before,
            Mode::Virtual | Mode::VirtualStrict => undelayed,
        }
    }

    fn step(&mut self, i: usize) -> Result<(), PlanError> {
        let program = self.program;
        let front_time = self.front_time(i);
        let (f, delay_before) = (self.fronts[i].f, self.fronts[i].delay_before);
        let fragment = program.executions[i].fragments[f];
        // Step 2: the delay that the others must not fall short of.
        let total = sum(delay_before, fragment.breakpoint)
            .and_then(|delay| sum(delay, self.plan.propagated(i, f)))
            .ok_or_else(|| PlanError::overflow(program, i, f))?;

        self.steps += 1;
        for fragment in &program.executions[i].fragments {
            self.uses[fragment.process.0 as usize] = self.steps;
        }
        let cause = (ExecutionIndex(i as u32), FragmentIndex(f as u32));
        for k in (0..self.fronts.len()).filter(|&k| k != i) {
            if !self.is_done(k) {
                self.propagate(k, front_time, total, cause)?;
            }
        }
        // Step 4.
        self.fronts[i] =
            Front { f: f + 1, st: self.fronts[i].st + fragment.time, delay_before: total };
        Ok(())
    }

    /// Step 3 for execution `k`: wait before the first RPC entry that could
    /// overtake, and take the same amount back from later waits.
    fn propagate(
        &mut self,
        k: usize,
        front_time: Ticks,
        total: Ticks,
        cause: (ExecutionIndex, FragmentIndex),
    ) -> Result<(), PlanError> {
        let Some((l, delay)) = self.first_entry_after(k, front_time)? else {
            return Ok(());
        };
        let mut owed = total.saturating_sub(delay);
        if owed == 0 {
            return Ok(());
        }
        let fragments = &self.program.executions[k].fragments;
        let front = &mut self.fronts[k];
        if l == front.f {
            front.f -= 1;
            front.st -= fragments[l - 1].time;
            front.delay_before -= fragments[l - 1].breakpoint + self.plan.propagated(k, l - 1);
        }
        self.plan.delay(k, l - 1, owed, cause);
        for u in l..fragments.len() {
            if owed == 0 {
                break;
            }
            owed -= self.plan.take_back(k, u, owed);
        }
        Ok(())
    }

    /// Step 3a: the first fragment of `k` from its front on that is entered by
    /// an RPC after `front_time` into a process of the stepped execution, and
    /// `k`'s delay at that entry.
    fn first_entry_after(
        &self,
        k: usize,
        front_time: Ticks,
    ) -> Result<Option<(usize, Ticks)>, PlanError> {
        let execution = &self.program.executions[k];
        let Front { f, mut st, delay_before: mut delay } = self.fronts[k];
        for l in f..execution.fragments.len() {
            let fragment = execution.fragments[l];
            let comes_after = match self.mode {
                Mode::Literal => front_time < st + delay,
                Mode::Virtual => front_time <= st,
                Mode::VirtualStrict => front_time < st,
            };
            let shared = self.uses[fragment.process.0 as usize] == self.steps;
            if comes_after && shared && execution.enters_by_rpc(l) {
                return Ok(Some((l, delay)));
            }
            st += fragment.time;
            delay = sum(delay, fragment.breakpoint)
                .and_then(|delay| sum(delay, self.plan.propagated(k, l)))
                .ok_or_else(|| PlanError::overflow(self.program, k, l))?;
        }
        Ok(None)
    }
}

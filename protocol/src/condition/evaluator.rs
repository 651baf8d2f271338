//! The thread that evaluates conditions: whatever an expression does, those who ask
//! go on, and get an answer or run into their own time limit.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::evaluate::evaluate;
use super::program::Program;
use super::{Condition, EvaluationError, Facts, InvalidCondition, STACK_BYTES, reader};

/// How many evaluations may wait.
const QUEUE_MAX: usize = 1024;

/// How many conditions stay read.
const PROGRAMS_MAX: usize = 256;

/// Evaluates conditions, one after the other, on a thread of its own that starts
/// with the first of them. Dropping it ends the thread, and nobody waits for that:
/// what is being evaluated is finished, what waits is answered with an error.
#[derive(Default)]
pub struct Evaluator {
    /// `None` when no thread could be started.
    jobs: OnceLock<Option<SyncSender<Job>>>,
    ended: Arc<AtomicBool>,
}

impl Evaluator {
    /// An evaluator without a thread yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks whether a condition holds. `answer` is called once: on the thread of the
    /// evaluator, or here and now if the question cannot be put.
    pub fn evaluate(
        &self,
        condition: &Condition,
        facts: Facts,
        answer: impl FnOnce(Result<bool, EvaluationError>) + Send + 'static,
    ) {
        let job = Job { condition: condition.clone(), facts, answer: Box::new(answer) };
        let Some(jobs) = self.jobs.get_or_init(|| self.start()) else {
            return (job.answer)(Err(EvaluationError::Ended));
        };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => (job.answer)(Err(EvaluationError::Busy)),
            Err(TrySendError::Disconnected(job)) => (job.answer)(Err(EvaluationError::Ended)),
        }
    }

    fn start(&self) -> Option<SyncSender<Job>> {
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let ended = self.ended.clone();
        let builder = thread::Builder::new().name("ddbx-conditions".into());
        builder.stack_size(STACK_BYTES).spawn(move || work(&queue, &ended)).ok().map(|_| jobs)
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluator").finish_non_exhaustive()
    }
}

struct Job {
    condition: Condition,
    facts: Facts,
    answer: Box<dyn FnOnce(Result<bool, EvaluationError>) + Send>,
}

fn work(queue: &Receiver<Job>, ended: &AtomicBool) {
    let mut programs = HashMap::new();
    for Job { condition, facts, answer } in queue {
        let outcome = if ended.load(Ordering::Relaxed) {
            Err(EvaluationError::Ended)
        } else {
            let outcome =
                catch_unwind(AssertUnwindSafe(|| holds(&mut programs, condition, &facts)));
            outcome.unwrap_or(Err(EvaluationError::Panicked))
        };
        // The answer is code of others: the thread outlives it.
        let _ = catch_unwind(AssertUnwindSafe(|| answer(outcome)));
    }
}

fn holds(
    programs: &mut HashMap<Condition, Result<Program, InvalidCondition>>,
    condition: Condition,
    facts: &Facts,
) -> Result<bool, EvaluationError> {
    if programs.len() >= PROGRAMS_MAX && !programs.contains_key(&condition) {
        programs.clear();
    }
    let program = programs.entry(condition).or_insert_with_key(|text| reader::read(text.as_str()));
    match program {
        Ok(program) => evaluate(program, facts),
        Err(invalid) => Err(invalid.clone().into()),
    }
}

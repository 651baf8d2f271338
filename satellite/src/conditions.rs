//! Conditions of breakpoints, evaluated away from the program's own stack.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use ddbx_protocol::attach::{COUNTS_MAX, ERROR_BYTES_MAX};
use ddbx_protocol::condition::{Condition, Evaluator, Facts};
use ddbx_protocol::{BreakpointId, ControlId, Count, ProcessName};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::driver::Captured;

/// The conditions of one process.
#[derive(Default)]
pub(crate) struct Conditions {
    evaluator: OnceLock<Evaluator>,
    errors: Mutex<BTreeMap<BreakpointId, Errors>>,
}

#[derive(Default)]
struct Errors {
    number: u32,
    last: String,
}

impl Conditions {
    /// The breakpoints among these whose condition holds. One that cannot be
    /// evaluated does not hold, and is counted.
    pub(crate) async fn holding(
        &self,
        conditions: Vec<(BreakpointId, Condition)>,
        captured: &Captured,
        watch: Map<String, Value>,
        (process, control): (ProcessName, &ControlId),
    ) -> Vec<BreakpointId> {
        let facts = Facts {
            args: captured.args.clone(),
            result: captured.result.clone(),
            watch,
            process: process.to_string(),
            control: control.to_string(),
        };
        let evaluator = self.evaluator.get_or_init(Evaluator::new);
        let mut holding = Vec::new();
        for (id, condition) in conditions {
            let (tell, told) = oneshot::channel();
            evaluator.evaluate(&condition, facts.clone(), |outcome| {
                let _ = tell.send(outcome);
            });
            match told.await {
                Ok(Ok(true)) => holding.push(id),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => self.count(id, error.to_string()),
                Err(_) => self.count(id, "the evaluation was broken off".to_owned()),
            }
        }
        holding
    }

    /// What happened at each of these breakpoints, which were met so often.
    pub(crate) fn counts(&self, met: impl Iterator<Item = (BreakpointId, u32)>) -> Vec<Count> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |(breakpoint, met)| {
            let errors = errors.get(&breakpoint);
            let error = errors.map(|errors| errors.last.clone());
            Count { breakpoint, met, errors: errors.map_or(0, |errors| errors.number), error }
        };
        met.map(count).take(COUNTS_MAX).collect()
    }

    /// A breakpoint is planted anew, or gone: what its condition was counts no more.
    pub(crate) fn forget(&self, id: BreakpointId) {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn count(&self, id: BreakpointId, mut error: String) {
        error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = errors.entry(id).or_default();
        errors.number = errors.number.saturating_add(1);
        errors.last = error;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_cannot_be_evaluated_is_counted_and_does_not_hold() {
        let conditions = Conditions::default();
        let asked = |texts: [&str; 3]| {
            let checked = texts.map(|text| Condition::check(text).unwrap());
            (1..).map(BreakpointId).zip(checked).collect::<Vec<_>>()
        };
        let captured = Captured { args: Some(json!({ "number": 7 })), result: None };
        let process = ProcessName::new("lab#2").unwrap();
        let control = ControlId::new("client/main").unwrap();
        for _ in 0..2 {
            let texts = ["args.number == 8", "args.price > 3", "process == 'lab#2'"];
            let who = (process.clone(), &control);
            let holding = conditions.holding(asked(texts), &captured, Map::new(), who).await;
            assert_eq!(holding, [BreakpointId(3)]);
        }
        let met = (1..=3).map(|number| (BreakpointId(number), 2));
        let counts = conditions.counts(met);
        assert_eq!(counts.iter().map(|count| count.errors).collect::<Vec<_>>(), [0, 2, 0]);
        assert!(counts[1].error.as_ref().unwrap().contains("price"), "{:?}", counts[1].error);
        conditions.forget(BreakpointId(2));
        assert_eq!(conditions.counts([(BreakpointId(2), 0)].into_iter())[0].error, None);
    }
}

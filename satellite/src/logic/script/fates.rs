//! What became of the calls of a process: whether they arrived, and were answered.

use std::collections::BTreeSet;

use ddbx_protocol::{CallId, End, EventKind};

use super::Script;

impl Script {
    /// Whether a call never arrived.
    pub fn is_lost(&self, call: &CallId) -> bool {
        self.lost.contains(call)
    }

    /// Its calls that it gave up, less those that arrived in the process itself.
    pub fn given_up(&self) -> BTreeSet<CallId> {
        use EventKind::{CallArrived, Cancelled, DeadlineExpired};
        let kinds = || self.steps.iter().map(|step| &step.kind);
        let given_up = kinds().filter_map(|kind| match kind {
            Cancelled { call, end: End::Caller } | DeadlineExpired { call, end: End::Caller } => {
                Some(call.clone())
            }
            _ => None,
        });
        let mut given_up: BTreeSet<CallId> = given_up.collect();
        if !given_up.is_empty() {
            let arrived = kinds().filter(|kind| matches!(kind, CallArrived { .. }));
            arrived.filter_map(EventKind::call).for_each(|call| _ = given_up.remove(call));
        }
        given_up
    }

    /// Its calls to which it got no answer.
    pub fn unanswered(&self) -> &BTreeSet<CallId> {
        &self.unanswered
    }

    /// Whether a call that has left is one to which there is an answer.
    pub fn is_answered(&self, call: &CallId) -> bool {
        // When it is over, there are calls that were not recorded.
        !self.is_over() && !self.unanswered.contains(call)
    }

    /// A call leaves the process.
    pub fn leaves(&mut self, call: &CallId) {
        if self.handled.contains(call) {
            self.abroad.insert(call.clone());
        }
    }

    /// An answer to it is there, whether anybody wants it or not.
    pub fn is_back(&mut self, call: &CallId) {
        self.abroad.remove(call);
    }

    /// Looks for those, when all has been read.
    pub(super) fn without_answer(&self) -> impl Iterator<Item = &CallId> {
        let made = self.steps.iter().filter_map(|step| match &step.kind {
            EventKind::CallSent { call, .. } => Some(call),
            _ => None,
        });
        made.filter(|call| {
            let call = (*call).clone();
            let answer = EventKind::ReturnArrived { call, sent_as: None };
            self.places.kind(&self.steps, &answer).is_none()
        })
    }
}

//! What else concerns the course of events in a process: they are recorded, they are
//! shaken, or they follow a recording.

use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::{
    CallPath, ChoiceName, ControlId, Delay, EventKind, EventNumber, ProcessIndex, ProcessName,
    Progress, RecordedSoFar,
};
use ddbx_recording::{Choice, ChoiceValue, Entry, Moment, Payload};

use super::Handle;
use super::fragments::Baton;
use super::pass::Arrival;
use super::replay::Replay;
use crate::last_words::{self, LastWords};
use crate::logic::script::{Like, Script};
use crate::recorder::Recorder;

/// Given to a satellite before anything happens.
#[derive(Default)]
pub struct Course {
    /// Writes it down.
    pub recorder: Option<Recorder>,
    /// Makes events wait for a little while.
    pub perturbation: Option<Perturbation>,
    /// What shall happen.
    pub script: Option<Script>,
    /// Where it is said how far that has come when the process ends.
    pub last_words: Option<LastWords>,
    /// Whether what controls share inside the process is to be used in the order of their
    /// events, so that a replay can repeat it: then one of them runs at a time.
    pub is_exact: bool,
    /// Whether what is said is recorded too: arguments, results and values of points.
    pub keeps_payloads: bool,
}

/// Small delays that shake out other orders, and are the same for the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perturbation {
    /// What they follow from.
    pub seed: u64,
    /// None is longer.
    pub longest: Duration,
}

impl Perturbation {
    /// How long an event waits: mostly not at all.
    pub fn of(&self, process: &str, kind: &EventKind) -> Duration {
        let hash = self.hash(process, kind);
        match hash % 4 {
            0 => {
                let longest = u64::try_from(self.longest.as_micros()).unwrap_or(u64::MAX);
                Duration::from_micros((hash >> 8) % longest.saturating_add(1))
            }
            _ => Duration::ZERO,
        }
    }

    /// Of what an event is in every run, so not of its number or its time.
    fn hash(&self, process: &str, kind: &EventKind) -> u64 {
        let mut text = format!("{process} {}", kind.identity());
        if let EventKind::Entered { nth, .. } = kind {
            text.push_str(&format!(" {nth}"));
        }
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mixed = text.bytes().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, fold);
        // The low bits of such a sum hardly depend on the seed.
        (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
    }
}

impl Running {
    /// Whether events are made to wait: for their turn, or for a little while.
    pub(super) fn has_turns(&self) -> bool {
        self.shakes() || self.replay.is_some()
    }

    /// Whether they are made to wait for a little while.
    pub(super) fn shakes(&self) -> bool {
        self.perturbation.is_some()
    }

    /// Whether others wait while a control runs.
    pub(super) fn is_in_order(&self) -> bool {
        self.replay.is_some() || self.baton.is_some()
    }

    /// Whether events are written down, and that is all.
    pub(super) fn only_records(&self) -> bool {
        let more = self.has_turns() || self.baton.is_some() || self.keeps_payloads;
        self.recorder.is_some() && !more
    }
}

pub(super) struct Running {
    pub(super) recorder: Option<Recorder>,
    pub(super) perturbation: Option<Perturbation>,
    pub(super) replay: Option<Arc<Replay>>,
    pub(super) baton: Option<Baton>,
    pub(super) keeps_payloads: bool,
}

/// The satellite is not needed any more; the program may go on.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(replay) = &self.replay {
            replay.say_last_word();
        }
    }
}

impl Handle {
    /// What concerns the course of events from the start.
    pub fn follow(&self, course: Course) {
        let Course { recorder, perturbation, script, last_words, is_exact, keeps_payloads } =
            course;
        let has_last_words = last_words.is_some();
        let replay = script.map(|script| {
            let replay = Arc::new(Replay::new(script, last_words, self.0.wake.clone()));
            if has_last_words {
                last_words::at_the_end(replay.clone());
            }
            replay
        });
        let baton = is_exact.then(Baton::default);
        let keeps_payloads = keeps_payloads && recorder.is_some() && replay.is_none();
        let course = Running { recorder, perturbation, replay, baton, keeps_payloads };
        let _ = self.0.course.set(course);
        self.is_called(self.process(), &self.name());
        self.open(&self.lock());
        // From now on it is told how far the replay has come.
        let _ = self.0.wake.send(());
    }

    /// Whether its events are recorded, shaken or follow a recording.
    #[inline]
    pub fn has_course(&self) -> bool {
        self.0.course.get().is_some()
    }

    /// Whether it follows a recording.
    #[inline]
    pub fn is_replay(&self) -> bool {
        self.replay().is_some()
    }

    /// How far it has come with that.
    pub fn progress(&self) -> Option<Progress> {
        self.replay().map(Replay::progress)
    }

    #[inline]
    pub(super) fn replay(&self) -> Option<&Replay> {
        self.0.course.get()?.replay.as_deref()
    }

    /// Whether what is said is recorded too.
    #[inline]
    pub(super) fn keeps_payloads(&self) -> bool {
        self.0.course.get().is_some_and(|course| course.keeps_payloads)
    }

    /// What is said at an event, if that is recorded: of an answer the result.
    pub(super) fn payload_of(&self, arrival: &Arrival) -> Option<Box<Payload>> {
        let Arrival::Judge(arrived) = arrival else { return None };
        let said = arrived.captured.as_ref().filter(|_| self.keeps_payloads())?;
        let value = said.result.as_ref().or(said.args.as_ref())?;
        Some(Box::new(Payload::new(&value.to_string())))
    }

    #[inline]
    pub(super) fn baton(&self) -> Option<&Baton> {
        self.0.course.get()?.baton.as_ref()
    }

    #[inline]
    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.0.course.get()?.recorder.as_ref()
    }

    /// What the events that are recorded call a process, this one included.
    pub fn is_called(&self, process: ProcessIndex, name: &ProcessName) {
        if let Some(recorder) = self.recorder() {
            recorder.meet(process, name.clone());
        }
    }

    /// Makes an event wait for a little while, if events are shaken.
    pub(super) async fn shake(&self, kind: impl FnOnce() -> EventKind) {
        if let Some(perturbation) = self.0.course.get().and_then(|course| course.perturbation) {
            let length = perturbation.of(self.name().as_str(), &kind());
            if !length.is_zero() {
                Box::pin(tokio::time::sleep(length)).await;
            }
        }
    }

    pub(super) fn recorded_so_far(&self) -> Option<RecordedSoFar> {
        self.recorder().map(Recorder::so_far)
    }

    /// Which of its calls a control makes, which it has counted; only in a replay.
    pub fn like(&self, outer: Option<&CallPath>, counted: &EventKind) -> Option<Like> {
        self.replay()?.ask(|script| script.like(outer, counted))
    }

    /// From whom the message came that a control got as its `nth`, if it got one:
    /// only in a replay.
    pub fn sender(
        &self,
        control: &ControlId,
        call: Option<&CallPath>,
        nth: u64,
    ) -> Option<Option<ControlId>> {
        let replay = self.replay()?;
        replay.ask(|script| script.sender(control, call, nth).map(Option::<&ControlId>::cloned))
    }

    /// What a choice came to: only in a replay.
    pub fn chosen(
        &self,
        control: &ControlId,
        call: Option<&CallPath>,
        name: &ChoiceName,
    ) -> Option<ChoiceValue> {
        self.replay()?.ask(|script| script.choice(control, call, name))
    }

    /// Writes down what a choice came to.
    pub fn keep_choice(
        &self,
        control: &ControlId,
        call: Option<&CallPath>,
        name: &ChoiceName,
        value: impl FnOnce() -> ChoiceValue,
    ) {
        if let Some(recorder) = self.recorder() {
            let (control, call, name) = (control.clone(), call.cloned(), name.clone());
            recorder.push(Entry::Choice(Choice { control, call, name, value: value() }));
        }
    }

    /// Writes down an event that has its number from a script.
    pub(super) fn keep_numbered(&self, number: EventNumber, delay: Delay, kind: EventKind) {
        if self.0.events.is_observed() {
            self.0.events.push(self.name(), number, self.now(), delay, kind.clone());
        }
        if let Some(recorder) = self.recorder() {
            recorder.push(Entry::Event(Moment {
                number,
                at: self.now(),
                delay,
                kind,
                payload: None,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::PointLabel;

    use super::*;

    #[test]
    fn delays_follow_from_the_seed_and_stay_small() {
        let longest = Duration::from_millis(5);
        let lengths = |seed| {
            let perturbation = Perturbation { seed, longest };
            let point = |n| EventKind::Point {
                control: ControlId::new("p/main").unwrap(),
                call: None,
                label: PointLabel::new(format!("point-{n}")).unwrap(),
            };
            (0..1000).map(|n| perturbation.of("p", &point(n))).collect::<Vec<_>>()
        };
        let (one, other) = (lengths(1), lengths(2));
        assert_eq!(one, lengths(1));
        assert!(one.iter().zip(&other).filter(|(a, b)| a != b).count() > 300);
        let delayed = one.iter().filter(|length| !length.is_zero()).count();
        assert!((150..350).contains(&delayed), "{delayed}");
        assert!(one.iter().all(|length| *length <= longest));
        assert!(one.iter().max() > Some(&(longest / 2)));
    }
}

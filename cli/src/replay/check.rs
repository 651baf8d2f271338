//! Whether a recording can be replayed at all.
//!
//! To know that, all of it has to be decoded. A finished recording of which no byte has changed
//! since is almost always in order: so that is done while its programs start, which mostly wait
//! for each other then. If it cannot be replayed after all, since it has a gap for instance,
//! they are stopped and that is said. Any other recording is checked before anything starts.

use std::future::pending;
use std::thread;

use ddbx_recording::{Keep, NotReplayable, Recording, is_replayable};
use tokio::sync::oneshot;

use super::cannot_use;
use crate::exit::Failure;

/// A recording is being checked, or has been.
pub(super) struct Check {
    /// What is found, as long as it is not known.
    coming: Option<oneshot::Receiver<Result<(), Failure>>>,
}

impl Check {
    /// Begins with it. What can be known at once is.
    pub(super) fn begin(recording: &Recording, is_partial_enough: bool) -> Result<Self, Failure> {
        if !is_as_it_was(recording) {
            check(recording, is_partial_enough)?;
            return Ok(Self { coming: None });
        }
        let (tell, found) = oneshot::channel();
        let recording = recording.clone();
        thread::Builder::new().name("ddbx-check".to_owned()).spawn(move || {
            // If nobody listens any more, the replay is over.
            let _ = tell.send(check(&recording, is_partial_enough));
        })?;
        Ok(Self { coming: Some(found) })
    }

    /// Waits until it is known whether the recording can be replayed.
    pub(super) async fn passed(&mut self) -> Result<(), Failure> {
        let Some(coming) = &mut self.coming else { return Ok(()) };
        let found = coming.await;
        self.coming = None;
        found.unwrap_or_else(|_| Err(Failure::Failed("the recording was not checked".to_owned())))
    }

    /// Waits until it is known that it cannot.
    pub(super) async fn failed(&mut self) -> Failure {
        match self.passed().await {
            Ok(()) => pending().await,
            Err(failure) => failure,
        }
    }
}

/// Whether a recording was finished with all that belongs to it, and is the same now.
fn is_as_it_was(recording: &Recording) -> bool {
    let is_same =
        || recording.seal().is_some_and(|seal| seal.check(recording.directory()).is_empty());
    recording.session().keep == Keep::All && is_same()
}

fn check(recording: &Recording, is_partial_enough: bool) -> Result<(), Failure> {
    match is_replayable(recording) {
        Err(NotReplayable::NotClosed { .. }) if is_partial_enough => Ok(()),
        checked => checked.map_err(|why| cannot_use(recording, &why)),
    }
}

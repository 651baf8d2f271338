//! Whether a recording can be replayed: all must be there, from the start on.

use ddbx_protocol::{EventId, EventNumber, ProcessName};
use thiserror::Error;

use crate::entry::Why;
use crate::manifest::Keep;
use crate::reader::Recording;
use crate::verify::{Finding, LostEntries, verify};

/// Checks the whole recording. A log that was not closed is mentioned only if all else
/// is in order: so whoever is content with what is there can go on.
pub fn is_replayable(recording: &Recording) -> Result<(), NotReplayable> {
    let mut found = verify(recording);
    if let Some(at) = found.findings.iter().position(Finding::is_wrong) {
        return Err(NotReplayable::NotSound(found.findings.swap_remove(at)));
    }
    if recording.session().keep != Keep::All {
        for log in &found.logs {
            if let Some((first, _)) = log.range.filter(|(first, _)| *first > EventNumber(1)) {
                let process = log.manifest.process.clone();
                return Err(NotReplayable::EndOnly { process, first });
            }
        }
    }
    let mut not_closed = None;
    for finding in found.findings {
        match finding {
            Finding::Gap(lost) => return Err(NotReplayable::Gap(lost)),
            Finding::DepartureLost { arrival, departure }
                if found.logs.iter().all(|log| log.manifest.process != departure.process) =>
            {
                return Err(NotReplayable::NotRecorded { arrival, process: departure.process });
            }
            Finding::NotClosed { process, .. } if recording.seal().is_none() => {
                not_closed.get_or_insert(process);
            }
            _ => {}
        }
    }
    not_closed.map_or(Ok(()), |process| Err(NotReplayable::NotClosed { process }))
}

/// Why a recording cannot be replayed.
#[derive(Debug, Error)]
pub enum NotReplayable {
    /// Something is wrong with it.
    #[error("{0}: restore the recording from a copy, or record again")]
    NotSound(Finding),
    /// Entries are missing.
    #[error("{}: record again {}", .0, better(.0.gap.why))]
    Gap(LostEntries),
    /// Its beginning was not kept.
    #[error(
        "only the end of the log of {process} was kept, from event {} on, and a replay begins at the start: record again without --keep",
        first.0
    )]
    EndOnly {
        /// Whose log.
        process: ProcessName,
        /// The first event that is there.
        first: EventNumber,
    },
    /// A process took part and did not record.
    #[error(
        "{arrival} comes from {process}, which did not record: record again, with all who take part"
    )]
    NotRecorded {
        /// What came from it.
        arrival: EventId,
        /// Who.
        process: ProcessName,
    },
    /// The recording is not finished, and a log may lack its end. What is there can be
    /// replayed.
    #[error(
        "the log of {process} was not closed: the process was killed or its tail was cut; replay what is there with --partial"
    )]
    NotClosed {
        /// Whose log.
        process: ProcessName,
    },
}

fn better(why: Why) -> &'static str {
    match why {
        Why::QueueFull => "with less else to do for the machine",
        Why::DiskFull => "with more room on the disk",
        Why::DiskError => "with the recording on another disk",
    }
}

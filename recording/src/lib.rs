//! What happened, on disk: one place for the format of recordings, the writer, the
//! reader and the number of their version.
//!
//! A recording is a directory. Each process adds a directory of its own to it, with
//! a manifest and a log; nobody coordinates them. A log is written while the program
//! runs and can be read meanwhile. When the run is over, a seal says what is in it, so
//! that nothing is lost or changed afterwards without a word. Nothing that goes wrong here is the program's
//! problem: what cannot be written is counted, and a gap in the log says so.
//!
//! The program's threads put [`Entry`]s and [`Note`]s into a [`Queue`], which never blocks; one
//! thread of the debugger moves them on:
//!
//! ```
//! use ddbx_protocol::{ControlId, Delay, EventKind, ProcessName, RealTime, SessionName};
//! use ddbx_recording::{
//!     Keep, LogWriter, NewProcess, Options, Queue, Recording, SessionManifest, join, verify,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let directory = temporary.path().join("recording");
//! let session = SessionManifest::new(SessionName::new("shop")?, "2026-01-01T00:00:00Z", Keep::All);
//! let name = ProcessName::new("inventory")?;
//! let process = NewProcess { name: name.clone(), pid: 42, command: None };
//! let files = join(&directory, &session, process)?;
//! let mut writer = LogWriter::new(files, &name, Options::default());
//! let queue = Queue::default();
//!
//! // On any thread of the program:
//! let now = RealTime::from_nanos(1_000);
//! let control = ControlId::root(&name, "main")?;
//! let number = queue.note(now, Delay::ZERO, EventKind::Ended { control });
//!
//! // On a thread of the debugger, every few milliseconds:
//! writer.drain(now, &queue);
//!
//! // When it must be safe at once:
//! writer.flush(now);
//! writer.sync();
//! assert_eq!(writer.durable(), number);
//! writer.close(now)?;
//!
//! let recording = Recording::open(&directory)?;
//! assert_eq!(recording.logs()[0].read()?.count(), 1);
//! assert!(verify(&recording).is_sound());
//! # Ok(())
//! # }
//! ```

mod directory;
mod entry;
pub mod format;
mod manifest;
mod merged;
mod note;
mod queue;
mod reader;
mod replayable;
mod seal;
mod storage;
mod verify;
mod writer;

pub use directory::{JoinError, NewProcess, create, join, session_in};
pub use entry::{Choice, ChoiceValue, Entry, Gap, Moment, Payload, ValueTooLong, Why};
pub use manifest::{Keep, ManifestError, ProcessManifest, Program, SessionManifest};
#[doc(hidden)]
pub use manifest::{decode_manifest, encode_manifest};
pub use merged::{Departure, Merged, MergedEntry, Step, merged};
pub use note::{Beginning, Happens, Note, Noted, SentAs, ToNote, Who};
pub use queue::Queue;
pub use reader::{
    Damage, Log, LogReader, OpenError, Position, ReadError, Recorded, Recording, SegmentReader,
    Source, Tail,
};
pub use replayable::{NotReplayable, is_replayable};
pub use seal::{Breach, Seal, SealError, SealedFile, seal};
pub use storage::{Files, Segment, Storage};
pub use verify::{Finding, LogSummary, LostEntries, Verification, verify};
pub use writer::{CloseError, Counters, LogWriter, Options};

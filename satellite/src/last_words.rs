//! How far a process has come that follows a recording and exits. Central hears of that from
//! time to time, and one that has exited can say nothing any more: so it is written into a
//! file, which whoever began the replay reads then. Until then nothing is written.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use ddbx_protocol::Progress;
use ddbx_protocol::control::ReplayView;

use crate::driver::Replay;

/// Where a process says its last word.
#[derive(Clone, Debug)]
pub struct LastWords {
    /// The file, to which a line is added: all processes of a replay have the same.
    pub file: PathBuf,
    /// Who says it.
    pub process: String,
    /// The how manieth of that name it is.
    pub start: u32,
}

/// All replays of this program, for its end. They are kept until then: a satellite may be dropped
/// by a thread of its own, which would not come to say anything any more.
static ALL: Mutex<Vec<Arc<Replay>>> = Mutex::new(Vec::new());

impl LastWords {
    /// Says it.
    pub(crate) fn say(&self, progress: Progress) -> io::Result<()> {
        let Self { file, process, start } = self;
        let (process, start, is_there) = (process.clone(), *start, false);
        let mut line = serde_json::to_vec(&ReplayView { process, start, is_there, progress })?;
        line.push(b'\n');
        // In one piece, so that those of others do not get in between.
        OpenOptions::new().append(true).create(true).open(file)?.write_all(&line)
    }
}

/// This one says its last word when the program ends, whether or not it has said one before.
pub(crate) fn at_the_end(replay: Arc<Replay>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        shutdown_hooks::add_shutdown_hook(say_all);
    });
    ALL.lock().unwrap_or_else(PoisonError::into_inner).push(replay);
}

extern "C" fn say_all() {
    let all = std::mem::take(&mut *ALL.lock().unwrap_or_else(PoisonError::into_inner));
    all.iter().for_each(|replay| replay.say_last_word());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_have_their_last_words_in_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("last-words");
        let progress = |done| Progress {
            done,
            of: 7,
            next: None,
            must_end: true,
            lasted: Duration::from_secs(1),
            idle: Duration::ZERO,
            waiting: Vec::new(),
            recent: Vec::new(),
            differs: None,
        };
        for start in [1, 2] {
            let last_words = LastWords { file: file.clone(), process: "p".to_owned(), start };
            last_words.say(progress(start.into())).unwrap();
        }
        let said = std::fs::read_to_string(file).unwrap();
        let said: Vec<ReplayView> =
            said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let view = |start: u32| {
            let (process, is_there) = ("p".to_owned(), false);
            ReplayView { process, start, is_there, progress: progress(start.into()) }
        };
        assert_eq!(said, [view(1), view(2)]);
    }
}

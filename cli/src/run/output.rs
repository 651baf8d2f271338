//! What people see of a run: what the processes print, each line with the name
//! of its process, and what ddbx says about them.
//!
//! A thread of its own writes, because a terminal can block for as long as
//! somebody looks at it, and processes must end in time even then. Processes
//! that print faster than it writes are slowed down; ddbx itself never waits.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::text;

pub(crate) mod escapes;
pub(crate) mod lines;

/// So many bytes of output may wait to be written.
const WAITING_BYTES_MAX: u32 = 4 << 20;

/// Names may be this wide; of longer ones the middle is left out.
const NAME_COLUMNS_MAX: usize = 24;

/// The name under which ddbx itself speaks.
const OWN_NAME: &str = "ddbx";

const COLOURS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

/// Where output goes.
pub struct Sinks {
    /// What the processes print.
    pub lines: Sink,
    /// What ddbx says.
    pub notes: Sink,
}

/// One place where output goes.
pub struct Sink {
    /// Where to write.
    pub writer: Box<dyn Write + Send>,
    /// Whether colours are shown there; otherwise nothing but text is written.
    pub colours: bool,
}

impl Sinks {
    /// Standard output and standard error, with colours where they are wanted.
    pub fn stdio(headless: bool) -> Self {
        let colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never && !headless;
        let lines = Sink { writer: Box::new(io::stdout()), colours };
        Self { lines, ..Self::stderr(headless) }
    }

    /// All on standard error.
    pub fn stderr(headless: bool) -> Self {
        let colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never && !headless;
        let sink = || Sink { writer: Box::new(io::stderr()), colours };
        Self { lines: sink(), notes: sink() }
    }
}

/// Everything that is printed goes through here, in the order in which it is said.
pub(crate) struct Printer {
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
    /// How the thread ended; `None` once that is known.
    end: Option<oneshot::Receiver<io::Result<()>>>,
}

/// What one process prints.
#[derive(Clone)]
pub(crate) struct Speaker {
    number: usize,
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
}

enum Message {
    /// A process printed it.
    Line { speaker: usize, line: String, _room: OwnedSemaphorePermit },
    /// ddbx says it.
    Note(String),
}

impl Printer {
    /// Starts the thread; names are those of the speakers, by number.
    pub(crate) fn start(names: &[&str], sinks: Sinks) -> io::Result<Self> {
        let columns = names.iter().chain([&OWN_NAME]).map(|name| text::width(name)).max();
        let columns = columns.unwrap_or(0).min(NAME_COLUMNS_MAX);
        let prefix = |name: &str, style: Style, sink: &Sink| {
            let name = text::padded(name, columns);
            if sink.colours { format!("{style}{name} |{style:#} ") } else { format!("{name} | ") }
        };
        let colours = COLOURS.iter().cycle().map(|colour| colour.on_default());
        let writing = Writing {
            prefixes: names.iter().zip(colours).map(|(n, c)| prefix(n, c, &sinks.lines)).collect(),
            own_prefix: prefix(OWN_NAME, Style::new().bold(), &sinks.notes),
            sinks,
        };
        let (queue, messages) = mpsc::unbounded_channel();
        let (ended, end) = oneshot::channel();
        thread::Builder::new().name("ddbx output".to_owned()).spawn(move || {
            // Nobody listens any more if the run was given up.
            let _ = ended.send(writing.run(messages));
        })?;
        Ok(Self {
            queue,
            room: Arc::new(Semaphore::new(WAITING_BYTES_MAX as usize)),
            end: Some(end),
        })
    }

    /// Says something in the name of ddbx; never waits.
    pub(crate) fn note(&self, note: String) {
        // If the thread has ended, `failed` says why.
        let _ = self.queue.send(Message::Note(note));
    }

    pub(crate) fn speaker(&self, number: usize) -> Speaker {
        Speaker { number, queue: self.queue.clone(), room: self.room.clone() }
    }

    /// Completes, once, only when the output can no longer be written.
    pub(crate) async fn failed(&mut self) -> io::Error {
        let end = match &mut self.end {
            Some(end) => end.await,
            None => std::future::pending().await,
        };
        self.end = None;
        match end {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => io::Error::other("the thread that writes it has ended"),
        }
    }

    /// Waits until all is written. All speakers must be gone.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.queue);
        match self.end {
            Some(end) => end.await.unwrap_or_else(|_| Err(io::Error::other("it was not written"))),
            None => Ok(()),
        }
    }
}

impl Speaker {
    /// Prints a line; waits while too many wait already.
    pub(crate) async fn line(&self, line: String) {
        let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX).clamp(1, WAITING_BYTES_MAX);
        if let Ok(room) = self.room.clone().acquire_many_owned(bytes).await {
            let line = Message::Line { speaker: self.number, line, _room: room };
            // If the thread has ended, the run is about to.
            let _ = self.queue.send(line);
        }
    }
}

struct Writing {
    prefixes: Vec<String>,
    own_prefix: String,
    sinks: Sinks,
}

impl Writing {
    fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) -> io::Result<()> {
        let mut buffer = Vec::new();
        while let Some(message) = messages.blocking_recv() {
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Line { speaker, line, .. } => {
                        let line = escapes::clean(&line, self.sinks.lines.colours);
                        writeln!(buffer, "{}{line}", self.prefixes[speaker])?;
                    }
                    Message::Note(note) => {
                        // Both may be the same terminal: keep the order there.
                        self.flush(&mut buffer)?;
                        let note = text::one_line(&note);
                        let notes = &mut self.sinks.notes.writer;
                        // Nobody can be told that nobody can be told.
                        let _ = writeln!(notes, "{}{note}", self.own_prefix);
                        let _ = notes.flush();
                    }
                }
                next = if buffer.len() < 1 << 16 { messages.try_recv().ok() } else { None };
            }
            self.flush(&mut buffer)?;
        }
        Ok(())
    }

    fn flush(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.sinks.lines.writer.write_all(buffer)?;
        buffer.clear();
        self.sinks.lines.writer.flush()
    }
}

#[cfg(test)]
mod tests;

//! Reads a long log ahead, in a thread of its own: while its entries are put in order, the next
//! ones are decoded.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::{thread, vec};

use crate::reader::{LogReader, ReadError, Recorded, Tail};

/// How many entries are handed over at once. A log that is not longer needs no thread.
const PIECE: usize = 512;

/// How many pieces wait to be taken.
const PIECES_MAX: usize = 4;

/// The entries of a log.
#[derive(Debug)]
pub(super) struct Ahead {
    piece: vec::IntoIter<Recorded>,
    /// How the log ends, if it does after these.
    end: Option<End>,
    rest: Rest,
}

/// Where the entries after that are.
#[derive(Debug)]
enum Rest {
    /// Nobody has read them.
    Unread(Box<LogReader>),
    /// Another thread reads them.
    Coming(Receiver<Piece>),
}

/// Entries that follow each other.
#[derive(Debug)]
struct Piece {
    entries: Vec<Recorded>,
    end: Option<End>,
}

/// How a log ends.
pub(super) type End = Result<Tail, ReadError>;

impl Ahead {
    /// The entries from here on, by another thread if there are many and it may.
    pub(super) fn new(mut reader: LogReader, may_have_thread: bool) -> Self {
        let Piece { entries, end } = piece(&mut reader);
        let rest = match end {
            None if may_have_thread => in_thread(reader),
            _ => Rest::Unread(Box::new(reader)),
        };
        Self { piece: entries.into_iter(), end, rest }
    }

    /// The next entry; or how the log ends, and that is all.
    pub(super) fn next(&mut self) -> Result<Recorded, End> {
        loop {
            if let Some(recorded) = self.piece.next() {
                return Ok(recorded);
            }
            if let Some(end) = self.end.take() {
                return Err(end);
            }
            let Piece { entries, end } = match &mut self.rest {
                Rest::Unread(reader) => piece(reader),
                Rest::Coming(pieces) => pieces.recv().expect("the end of the log comes last"),
            };
            (self.piece, self.end) = (entries.into_iter(), end);
        }
    }
}

fn piece(reader: &mut LogReader) -> Piece {
    let mut entries = Vec::with_capacity(PIECE);
    while entries.len() < PIECE {
        match reader.read() {
            Ok(Some(recorded)) => entries.push(recorded),
            Ok(None) => return Piece { entries, end: Some(Ok(reader.tail())) },
            Err(error) => return Piece { entries, end: Some(Err(error)) },
        }
    }
    Piece { entries, end: None }
}

/// If there can be no thread, it is read here.
fn in_thread(reader: LogReader) -> Rest {
    let (hand_over, taken) = channel::<LogReader>();
    let (tell, pieces) = sync_channel(PIECES_MAX);
    let read = move || {
        if let Ok(reader) = taken.recv() {
            read_all(reader, &tell);
        }
    };
    match thread::Builder::new().name("ddbx-reader".to_owned()).spawn(read) {
        Ok(_) => match hand_over.send(reader) {
            Ok(()) => Rest::Coming(pieces),
            Err(unsent) => Rest::Unread(Box::new(unsent.0)),
        },
        Err(_) => Rest::Unread(Box::new(reader)),
    }
}

/// Until its end, or until nobody wants to know any more.
fn read_all(mut reader: LogReader, tell: &SyncSender<Piece>) {
    loop {
        let piece = piece(&mut reader);
        let is_last = piece.end.is_some();
        if tell.send(piece).is_err() || is_last {
            return;
        }
    }
}

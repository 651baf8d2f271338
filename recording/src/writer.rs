//! Writes a log.
//!
//! No thread, no clock and no waiting in here: somebody drains the queue every few
//! milliseconds and says what time it is. An entry goes through three stages: into
//! the open block, with other blocks into `unwritten`, to the storage. When the
//! storage fails, what is encoded waits and is tried again; what comes meanwhile and
//! has no more room is counted, and a gap takes its place as soon as there is some.
//!
//! A sync waits for the disk, so this belongs on a thread that nobody waits for.
//!
//! A write may end half-way through a block. That needs no repair: the rest of the
//! block is what is written next.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ddbx_protocol::{EventNumber, ProcessName, RealTime};
use thiserror::Error;

use crate::entry::{Entry, Gap, Why};
use crate::format::body::{BODY_BYTES_FULL, Encoder};
use crate::format::{BODY_BYTES_MAX, BlockKind, Header, encode_block};
use crate::manifest::SEGMENTS_KEPT;
use crate::note::Noted;
use crate::queue::{Line, Queue, Taken, Usual};
use crate::storage::{Segment, Storage};

mod options;

pub use options::Options;

/// How much is written at once. To ask the system for it costs as much as some pages do, so
/// this is more than there mostly is.
const WRITTEN_AT_ONCE: usize = 4 * BODY_BYTES_FULL;

/// How much waits for a storage that fails, before entries are dropped.
const UNWRITTEN_BYTES_MAX: usize = 1024 * 1024;

/// How long a storage that failed is left alone.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What a writer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries that were taken into the log.
    pub entries: u64,
    /// Entries that were lost, before they came here or here.
    pub missing: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// How often the storage failed to create, to write or to remove.
    pub failures: u64,
    /// How often it failed to sync.
    pub sync_failures: u64,
}

/// The writer of one log.
#[derive(Debug)]
pub struct LogWriter<S> {
    storage: S,
    options: Options,
    process: ProcessName,
    segment: Segment,
    is_created: bool,
    /// The segment has its last block; the next one comes as soon as that is safe.
    is_ended: bool,
    /// How long the segment is when all is written.
    segment_bytes: u64,
    /// Older segments that are still there, with their lengths.
    kept: VecDeque<(Segment, u64)>,
    encoder: Encoder,
    unwritten: Vec<u8>,
    /// Where blocks end, counted in all bytes ever, and the last event in each.
    ends: VecDeque<(u64, EventNumber)>,
    /// Entries that could not be taken since the last gap was.
    missing: Option<Gap>,
    /// When the oldest entry came that is not written.
    waits_since: Option<RealTime>,
    /// When the oldest write was made that is not synced.
    unsynced_since: Option<RealTime>,
    retry_at: Option<RealTime>,
    last_error: Option<io::Error>,
    written: EventNumber,
    durable: EventNumber,
    counters: Counters,
    batch: Taken,
}

/// What can be put into a log.
#[derive(Clone, Copy)]
enum Item<'a> {
    Entry(&'a Entry),
    Note(&'a Noted),
    Usual(EventNumber, &'a Usual),
}

impl<S: Storage> LogWriter<S> {
    /// A writer of the log of `process`. Nothing is written before there is an entry.
    pub fn new(storage: S, process: &ProcessName, options: Options) -> Self {
        let mut writer = Self {
            storage,
            options,
            process: process.clone(),
            segment: Segment::FIRST,
            is_created: false,
            is_ended: false,
            segment_bytes: 0,
            kept: VecDeque::new(),
            encoder: Encoder::default(),
            unwritten: Vec::new(),
            ends: VecDeque::new(),
            missing: None,
            waits_since: None,
            unsynced_since: None,
            retry_at: None,
            last_error: None,
            written: EventNumber(0),
            durable: EventNumber(0),
            counters: Counters::default(),
            batch: Taken::default(),
        };
        writer.begin_segment(Segment::FIRST);
        writer
    }

    /// Takes all that waits in the queue, and does what is due.
    pub fn drain(&mut self, now: RealTime, queue: &Queue) {
        let mut batch = std::mem::take(&mut self.batch);
        let dropped = queue.take(&mut batch);
        let (mut lines, mut entries) = (&batch.lines[..], batch.entries.iter());
        let (mut notes, mut met) = (batch.notes.iter(), batch.met.iter());
        let mut last = batch.before;
        while let Some((line, rest)) = lines.split_first() {
            let many = self.put_many(now, last, lines);
            if many > 0 {
                (last.0, lines) = (last.0 + many as u64, &lines[many..]);
            } else {
                lines = rest;
                last.0 += u64::from(matches!(line, Line::Usual(_) | Line::Note | Line::Event));
                match line {
                    Line::Usual(usual) => self.put(now, Item::Usual(last, usual)),
                    Line::Note => {
                        notes.next().into_iter().for_each(|noted| self.put(now, Item::Note(noted)));
                    }
                    Line::Event | Line::Entry => {
                        entries.next().into_iter().for_each(|entry| self.append(now, entry));
                    }
                    Line::Met => {
                        let met = met.next().into_iter();
                        met.for_each(|(process, name)| self.encoder.meet(*process, name));
                    }
                }
            }
            if self.is_large() {
                self.flush(now);
            }
        }
        batch.clear();
        self.batch = batch;
        if dropped > 0 {
            self.miss(dropped, Why::QueueFull);
        }
        self.poll(now);
    }

    /// Takes one entry. It is not written before the next [`poll`](Self::poll).
    pub fn append(&mut self, now: RealTime, entry: &Entry) {
        match entry {
            Entry::Gap(gap) => self.miss(gap.missing, gap.why),
            Entry::Event(_) | Entry::Choice(_) => self.put(now, Item::Entry(entry)),
        }
    }

    /// Takes the notes with which these begin, whose numbers follow that one, as long as there is
    /// nothing else to do: how many. Nearly all that comes is taken so.
    fn put_many(&mut self, now: RealTime, last: EventNumber, lines: &[Line]) -> usize {
        if self.is_ended || self.missing.is_some() || self.is_large() {
            return 0;
        }
        let mut taken = 0;
        while let Some(Line::Usual(usual)) = lines.get(taken)
            && !self.encoder.is_full()
        {
            taken += 1;
            self.encoder.push_usual(EventNumber(last.0 + taken as u64), usual);
        }
        if taken > 0 {
            self.waits_since.get_or_insert(now);
            self.counters.entries += taken as u64;
        }
        if self.encoder.is_full() {
            self.close_block();
        }
        taken
    }

    fn put(&mut self, now: RealTime, item: Item<'_>) {
        if self.is_full() {
            return self.miss(1, self.why());
        }
        if self.missing.is_some() {
            self.note_gap(now);
        }
        self.take(now, item);
        self.counters.entries += 1;
    }

    /// Writes and syncs what is due.
    pub fn poll(&mut self, now: RealTime) {
        let is_due = |since: Option<RealTime>, after| since.is_some_and(|at| now >= at + after);
        let is_old = is_due(self.waits_since, self.options.write_after);
        if is_old || self.is_large() || self.missing.is_some() {
            self.flush(now);
        }
        if let Some(after) = self.options.sync_after
            && is_due(self.unsynced_since, after)
        {
            self.sync();
        }
    }

    /// When [`poll`](Self::poll) has something to do next, if nothing comes.
    pub fn poll_at(&self) -> Option<RealTime> {
        let write_at = self.waits_since.map(|at| at + self.options.write_after);
        let write_at = write_at.map(|at| at.max(self.retry_at.unwrap_or(at)));
        let sync_at = self.options.sync_after.and_then(|after| Some(self.unsynced_since? + after));
        write_at.into_iter().chain(sync_at).min()
    }

    /// Writes all there is, unless the storage has just failed.
    pub fn flush(&mut self, now: RealTime) {
        if self.retry_at.is_none_or(|at| now >= at) {
            // The error is kept, and what it kept from being written too.
            let _ = self.try_flush(now);
        }
    }

    /// Makes what is written safe from a power cut. This may take as long as the
    /// disk wants.
    pub fn sync(&mut self) {
        if self.unsynced_since.take().is_none() {
            return;
        }
        match self.storage.sync() {
            // After a failure the kernel may have dropped what it could not write,
            // and a later success says nothing about that.
            Ok(()) if self.counters.sync_failures > 0 => {}
            Ok(()) => self.durable = self.written,
            Err(error) => {
                self.counters.sync_failures += 1;
                self.last_error = Some(error);
            }
        }
    }

    /// Ends the log in good order.
    pub fn close(mut self, now: RealTime) -> Result<Counters, CloseError> {
        let result = self.try_flush(now).and_then(|()| {
            self.end_block(BlockKind::End);
            self.write(now)
        });
        self.sync();
        match result {
            Ok(()) if self.counters.sync_failures == 0 => Ok(self.counters),
            _ => {
                let unwritten = self.unwritten.len();
                let source = self.last_error.unwrap_or_else(|| io::Error::other("unknown"));
                Err(CloseError { process: self.process, unwritten, source })
            }
        }
    }

    /// The last event that is with the operating system: it survives the process.
    pub fn written(&self) -> EventNumber {
        self.written
    }

    /// The last event that is on the disk: it survives a power cut.
    pub fn durable(&self) -> EventNumber {
        self.durable
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What went wrong last.
    pub fn last_error(&self) -> Option<&io::Error> {
        self.last_error.as_ref()
    }

    fn is_large(&self) -> bool {
        self.unwritten.len() >= WRITTEN_AT_ONCE
    }

    /// Whether there is no room for another entry.
    fn is_full(&self) -> bool {
        // A block cannot be closed before the segment that it belongs to is begun.
        self.unwritten.len() + self.encoder.body_bytes() >= UNWRITTEN_BYTES_MAX
            || self.is_ended && self.encoder.is_full()
    }

    fn why(&self) -> Why {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self.last_error.as_ref().map(io::Error::kind) {
            None => Why::QueueFull,
            Some(StorageFull | QuotaExceeded | FileTooLarge) => Why::DiskFull,
            Some(_) => Why::DiskError,
        }
    }

    fn miss(&mut self, missing: u64, why: Why) {
        let gap = self.missing.get_or_insert(Gap { missing: 0, why });
        gap.missing = gap.missing.saturating_add(missing);
        self.counters.missing = self.counters.missing.saturating_add(missing);
    }

    fn note_gap(&mut self, now: RealTime) {
        if let Some(gap) = self.missing.take() {
            self.take(now, Item::Entry(&Entry::Gap(gap)));
        }
    }

    fn take(&mut self, now: RealTime, item: Item<'_>) {
        match item {
            Item::Entry(entry) => self.encoder.push(entry),
            Item::Note(noted) => self.encoder.push_note(noted),
            Item::Usual(number, usual) => self.encoder.push_usual(number, usual),
        }
        self.waits_since.get_or_insert(now);
        if self.encoder.is_full() && !self.is_ended {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let before = self.unwritten.len();
        self.encoder.close_block(self.segment_bytes, &mut self.unwritten);
        self.queued(before);
    }

    fn end_block(&mut self, kind: BlockKind) {
        let before = self.unwritten.len();
        encode_block(self.segment_bytes, kind, self.encoder.next(), &[], &mut self.unwritten);
        self.queued(before);
    }

    /// Something was perhaps added to what is unwritten, which was `before` bytes long.
    fn queued(&mut self, before: usize) {
        if self.unwritten.len() == before {
            return;
        }
        self.segment_bytes += (self.unwritten.len() - before) as u64;
        let last = EventNumber(self.encoder.next().0.wrapping_sub(1));
        self.ends.push_back((self.counters.bytes + self.unwritten.len() as u64, last));
    }

    fn begin_segment(&mut self, segment: Segment) {
        let header = Header { segment, process: self.process.clone() }.encode();
        self.segment = segment;
        self.segment_bytes = header.len() as u64;
        self.unwritten.extend(header);
        (self.is_created, self.is_ended) = (false, false);
    }

    fn try_flush(&mut self, now: RealTime) -> io::Result<()> {
        if self.is_ended {
            self.next_segment(now)?;
        }
        self.close_block();
        self.write(now)?;
        self.note_gap(now);
        self.close_block();
        self.write(now)?;
        self.waits_since = None;
        let full = |max| self.segment_bytes + BODY_BYTES_MAX as u64 >= max;
        if self.options.keep.segment_bytes().is_some_and(full) {
            self.end_block(BlockKind::Continued);
            self.encoder.restart();
            self.is_ended = true;
            self.next_segment(now)?;
        }
        Ok(())
    }

    fn write(&mut self, now: RealTime) -> io::Result<()> {
        if !self.is_created && !self.ends.is_empty() {
            self.storage.create(self.segment).map_err(|error| self.failed(now, error))?;
            self.is_created = true;
        }
        while !self.ends.is_empty() {
            let count = match self.storage.write(&self.unwritten) {
                Ok(0) => return Err(self.failed(now, io::ErrorKind::WriteZero.into())),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(now, error)),
            };
            self.unwritten.drain(..count);
            self.counters.bytes += count as u64;
            self.unsynced_since.get_or_insert(now);
            while let Some((_, last)) =
                self.ends.pop_front_if(|(end, _)| *end <= self.counters.bytes)
            {
                self.written = last;
            }
        }
        self.retry_at = None;
        Ok(())
    }

    /// Begins the next segment when this one is safe, and lets go of old ones.
    fn next_segment(&mut self, now: RealTime) -> io::Result<()> {
        self.write(now)?;
        self.sync();
        self.kept.push_back((self.segment, self.segment_bytes));
        self.begin_segment(self.segment.next());
        let Some(max) = self.options.keep.segment_bytes() else {
            return Ok(());
        };
        let mut kept_bytes: u64 = self.kept.iter().map(|(_, bytes)| bytes).sum();
        while let Some(&(oldest, bytes)) = self.kept.front()
            && kept_bytes + max > max * SEGMENTS_KEPT
        {
            if let Err(error) = self.storage.remove(oldest) {
                // It is tried again with the next one; writing goes on.
                self.counters.failures += 1;
                self.last_error = Some(error);
                break;
            }
            self.kept.pop_front();
            kept_bytes -= bytes;
        }
        Ok(())
    }

    /// Keeps what can be shown of an error, and hands it on.
    fn failed(&mut self, now: RealTime, error: io::Error) -> io::Error {
        self.counters.failures += 1;
        self.retry_at = Some(now + RETRY_AFTER);
        let kind = error.kind();
        self.last_error = Some(error);
        kind.into()
    }
}

/// A log that could not be closed in good order.
#[derive(Debug, Error)]
#[error(
    "the log of {process} could not be closed, and {unwritten} bytes of it are lost ({source}); what is before them can be read"
)]
pub struct CloseError {
    process: ProcessName,
    unwritten: usize,
    source: io::Error,
}

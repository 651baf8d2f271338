//! Reads one file of a log, which may still grow.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ddbx_protocol::ProcessName;

use super::{Damage, Position, Recorded, Tail};
use crate::format::body::Decoder;
use crate::format::{self, BlockKind, FormatError, HEAD_BYTES, HEADER_BYTES_MAX, Head, Header};
use crate::storage::Segment;

/// Bytes that can be read at any place, and may grow at the end.
pub trait Source {
    /// Reads some of the bytes from `at` on; none at the end.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, at)
    }
}

impl Source for &[u8] {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// The reader of one segment.
#[derive(Debug)]
pub struct SegmentReader<S> {
    source: S,
    header: Header,
    /// The block that is read next; its byte is 0 as long as the header is to be read.
    next: Position,
    /// The block whose entries are being read.
    current: Position,
    /// That block, and where in it the next entry begins.
    block: Vec<u8>,
    entry_at: usize,
    decoder: Decoder,
    /// What was wrong with an entry. The decoder may have lost its way by then.
    broken: Option<FormatError>,
    tail: Tail,
    is_continued: bool,
}

impl<S: Source> SegmentReader<S> {
    /// Reads a segment of the log of `process`.
    pub fn new(source: S, process: ProcessName, segment: Segment) -> Self {
        let start = Position { segment, block: 0, byte: 0 };
        Self {
            source,
            header: Header { segment, process },
            next: start,
            current: start,
            block: Vec::new(),
            entry_at: 0,
            decoder: Decoder::default(),
            broken: None,
            tail: Tail::Open(start),
            is_continued: false,
        }
    }

    /// The next entry; none at the end of what has been written so far. An error
    /// comes with its place, and comes again.
    pub fn read(&mut self) -> Result<Option<Recorded>, (Position, Damage)> {
        loop {
            let end = self.block.len().saturating_sub(format::SUM_BYTES);
            if self.entry_at < end {
                let position = self.current;
                let decoded = match self.broken {
                    None => self.decoder.next(&self.block[self.entry_at..end]),
                    Some(error) => Err(error),
                };
                let (entry, used) = decoded.map_err(|error| {
                    self.broken = Some(error);
                    (position, error.into())
                })?;
                self.entry_at += used;
                return Ok(Some(Recorded { position, entry }));
            }
            if !self.next_block().map_err(|damage| (self.next, damage))? {
                return Ok(None);
            }
        }
    }

    /// How the segment ends, as far as it has been read.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Whether the log goes on in the next segment.
    pub fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Reads the next block; false if there is none, or not all of it.
    fn next_block(&mut self) -> Result<bool, Damage> {
        if self.next.byte == 0 && !self.read_header()? {
            return Ok(false);
        }
        let at = self.next.byte;
        let mut head = [0; HEAD_BYTES];
        let found = self.fill(&mut head, at)?;
        if self.tail == Tail::Closed || self.is_continued {
            return if found == 0 { Ok(false) } else { Err(Damage::AfterEnd) };
        }
        if found < HEAD_BYTES {
            self.tail = if found == 0 { Tail::Open(self.next) } else { Tail::Torn(self.next) };
            return Ok(false);
        }
        let head = Head::decode(at, &head)?;
        let mut block = std::mem::take(&mut self.block);
        block.resize(head.block_bytes(), 0);
        let found = self.fill(&mut block, at)?;
        if found < block.len() {
            // There is nothing to read in it until it is whole.
            self.tail = Tail::Torn(self.next);
            return Ok(false);
        }
        format::check_block(at, &block)?;
        match head.kind {
            BlockKind::Fresh | BlockKind::More => self.decoder.begin(head.kind, head.first),
            BlockKind::Continued => self.is_continued = true,
            BlockKind::End => self.tail = Tail::Closed,
        }
        self.current = self.next;
        self.next = Position {
            segment: self.next.segment,
            block: self.next.block + 1,
            byte: at + block.len() as u64,
        };
        if self.tail != Tail::Closed {
            self.tail = Tail::Open(self.next);
        }
        self.block = block;
        self.entry_at = HEAD_BYTES;
        Ok(true)
    }

    /// Reads what the file begins with; false if not all of it is there.
    fn read_header(&mut self) -> Result<bool, Damage> {
        let mut bytes = [0; HEADER_BYTES_MAX];
        let found = self.fill(&mut bytes, 0)?;
        match Header::decode(&bytes[..found]) {
            Ok((header, _)) if header != self.header => Err(Damage::Misplaced),
            Ok((_, len)) => {
                self.next.byte = len as u64;
                Ok(true)
            }
            Err(FormatError::CutOff) => {
                self.tail = if found == 0 { Tail::Open(self.next) } else { Tail::Torn(self.next) };
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads until the buffer is full or there is nothing more.
    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut found = 0;
        while found < buffer.len() {
            match self.source.read_at(&mut buffer[found..], at + found as u64) {
                Ok(0) => break,
                Ok(count) => found += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

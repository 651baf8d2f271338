//! A storage that keeps its files in memory, and fails when it is told to.

#![allow(dead_code, reason = "shared by tests and examples")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use ddbx_protocol::ProcessName;
use ddbx_recording::{Damage, Entry, Position, Segment, SegmentReader, Storage, Tail};

/// Clones share the files.
#[derive(Clone, Default)]
pub struct Memory(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    files: BTreeMap<Segment, Vec<u8>>,
    operations: u64,
    fails: Option<Box<dyn Fn(u64) -> Option<io::ErrorKind>>>,
    /// The most that is written at once.
    gulp: Option<usize>,
    syncs: u64,
    /// Which operations began or removed a segment.
    segment_operations: Vec<u64>,
}

impl Memory {
    /// Fails the operations, counted from 0, for which `fails` has an error.
    pub fn failing(fails: impl Fn(u64) -> Option<io::ErrorKind> + 'static) -> Self {
        let memory = Self::default();
        memory.0.borrow_mut().fails = Some(Box::new(fails));
        memory
    }

    /// Writes at most so many bytes at once.
    pub fn gulping(self, bytes: usize) -> Self {
        self.0.borrow_mut().gulp = Some(bytes);
        self
    }

    pub fn files(&self) -> BTreeMap<Segment, Vec<u8>> {
        self.0.borrow().files.clone()
    }

    /// The only file.
    pub fn bytes(&self) -> Vec<u8> {
        let files = self.files();
        assert!(files.len() <= 1);
        files.into_values().next().unwrap_or_default()
    }

    pub fn operations(&self) -> u64 {
        self.0.borrow().operations
    }

    /// Which operations began or removed a segment, or came just before that.
    pub fn segment_operations(&self) -> Vec<u64> {
        let at = self.0.borrow().segment_operations.clone();
        at.iter().flat_map(|&index| index.saturating_sub(2)..=index).collect()
    }

    pub fn syncs(&self) -> u64 {
        self.0.borrow().syncs
    }

    fn operate<T>(&self, operation: impl FnOnce(&mut Inner) -> T) -> io::Result<T> {
        let mut inner = self.0.borrow_mut();
        let index = inner.operations;
        inner.operations += 1;
        match inner.fails.as_ref().and_then(|fails| fails(index)) {
            Some(kind) => Err(kind.into()),
            None => Ok(operation(&mut inner)),
        }
    }
}

impl Storage for Memory {
    fn create(&mut self, segment: Segment) -> io::Result<()> {
        self.operate(|inner| {
            inner.segment_operations.push(inner.operations - 1);
            assert!(inner.files.insert(segment, Vec::new()).is_none(), "{segment:?} twice");
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.operate(|inner| {
            let count = bytes.len().min(inner.gulp.unwrap_or(usize::MAX));
            let mut file = inner.files.last_entry().unwrap();
            file.get_mut().extend(&bytes[..count]);
            count
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.operate(|inner| inner.syncs += 1)
    }

    fn remove(&mut self, segment: Segment) -> io::Result<()> {
        self.operate(|inner| {
            inner.segment_operations.push(inner.operations - 1);
            assert!(inner.files.remove(&segment).is_some());
        })
    }
}

/// What can be read of a file: entries with their places, and how it ends.
pub struct Contents {
    pub entries: Vec<(Position, Entry)>,
    pub end: Result<Tail, (Position, Damage)>,
}

pub fn read(bytes: &[u8], process: &ProcessName, segment: Segment) -> Contents {
    let mut reader = SegmentReader::new(bytes, process.clone(), segment);
    let mut entries = Vec::new();
    loop {
        match reader.read() {
            Ok(Some(recorded)) => entries.push((recorded.position, recorded.entry)),
            Ok(None) => return Contents { entries, end: Ok(reader.tail()) },
            Err(damage) => return Contents { entries, end: Err(damage) },
        }
    }
}

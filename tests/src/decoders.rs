//! All that reads bytes from outside, once: the mutation test and the fuzzer of `fuzz/`
//! both go through this list.
//!
//! Whatever the bytes are, a decoder must not panic, must not exhaust the stack, and must
//! not take more memory than its limit. What else an input does (it is refused, mostly) is
//! for the tests beside the decoder.

pub mod mutation;
pub mod trial;

mod envelope;
mod link;
mod messages;
mod recording;
mod session;
mod text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

/// The longest frame of any connection. No decoder may take more than twice that, whatever
/// it is given.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// The longest frame of a satellite or of a controller.
pub const DIALLED_BYTES_MAX: usize = 1 << 20;

/// What a thread has if nobody says otherwise: handlers and connections run on such.
pub const STACK_BYTES: usize = 2 << 20;

/// Something that reads bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// Also the name of its fuzz target and of the folder of its corpus.
    pub name: &'static str,
    /// Inputs that are right, or nearly: what mutations begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Inputs that are as large as they may be, and made to take as much as possible.
    pub worst: fn() -> Vec<Vec<u8>>,
    /// Reads an input to its end; false if it was refused.
    pub decode: fn(&[u8]) -> bool,
    /// How much memory it may take beyond the input.
    pub heap_bytes_max: usize,
    /// The stack that it has where it is used.
    pub stack_bytes: usize,
    /// Its part of all inputs, compared with others: some take a thousand times as long.
    pub share: u64,
}

impl Decoder {
    /// Most are like this.
    const fn new(
        name: &'static str,
        seeds: fn() -> Vec<Vec<u8>>,
        decode: fn(&[u8]) -> bool,
    ) -> Self {
        let heap_bytes_max = 2 * FRAME_BYTES_MAX;
        let stack_bytes = STACK_BYTES;
        Self { name, seeds, worst: Vec::new, decode, heap_bytes_max, stack_bytes, share: 100 }
    }

    const fn worst(self, worst: fn() -> Vec<Vec<u8>>) -> Self {
        Self { worst, ..self }
    }

    const fn heap(self, heap_bytes_max: usize) -> Self {
        Self { heap_bytes_max, ..self }
    }

    const fn stack(self, stack_bytes: usize) -> Self {
        Self { stack_bytes, ..self }
    }

    const fn share(self, share: u64) -> Self {
        Self { share, ..self }
    }

    /// The inputs that mutations begin with: the seeds, and what is kept in the corpus.
    ///
    /// # Errors
    ///
    /// If the corpus cannot be read.
    pub fn inputs(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut inputs = (self.seeds)();
        let folder = corpus().join(self.name);
        let mut kept: Vec<PathBuf> = match fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        // The same order everywhere, so that a seed means the same everywhere.
        kept.sort();
        for path in kept {
            inputs.push(fs::read(path)?);
        }
        Ok(inputs)
    }
}

/// Where inputs are kept that were found once.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

/// All of them.
pub const DECODERS: &[Decoder] = &[
    link::LISTENER,
    link::DIALLER,
    link::FROM_SATELLITE,
    link::FROM_CENTRAL,
    link::REQUEST,
    link::REPLY,
    link::FRAMES,
    session::CENTRAL,
    session::SATELLITE,
    envelope::BINCODE,
    envelope::JSON,
    recording::LOG,
    recording::ENTRIES,
    recording::MANIFEST,
    recording::SEAL,
    recording::RECORDING,
    text::SPEC,
    text::CONDITION,
    text::ADDRESS,
    text::CONFIG,
    text::PLAN,
];

/// The one of this name.
pub fn decoder(name: &str) -> Option<&'static Decoder> {
    DECODERS.iter().find(|decoder| decoder.name == name)
}

/// What a fuzz target does with an input.
///
/// # Panics
///
/// If there is no decoder of this name, or if it does what it must not do.
pub fn fuzz(name: &str, input: &[u8]) {
    let decoder = decoder(name).unwrap_or_else(|| panic!("there is no decoder {name}"));
    if decoder.stack_bytes <= STACK_BYTES {
        (decoder.decode)(input);
        return;
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(decoder.stack_bytes);
        let decodes = builder.spawn_scoped(scope, || (decoder.decode)(input));
        decodes.expect("a thread").join().expect("no decoder panics");
    });
}

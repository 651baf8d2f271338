//! The format of a log: encoding, decoding and version together, so that none
//! changes without the others.
//!
//! A log is one file, or, when only its end is kept, a chain of files; such a file
//! is a *segment*, and each can be read by itself. All numbers are little-endian:
//!
//! ```text
//! segment  "ddbx-log"  version u16  segment u32  length u8, process name  crc u32
//!          block …
//! block    kind u8  body length u24  first event number u64  crc u32 of these
//!          body     crc u32 of kind to body
//! ```
//!
//! Both sums of a block also cover its place in the file, so that a block that was
//! moved, doubled or left out does not fit. The first of them stands before the body
//! because of torn tails: what ends before a block whose length is trusted was cut
//! off; without that, damage to a length would look the same.
//!
//! What is in a body is in [`body`].

use ddbx_protocol::{EventNumber, ProcessName};
use thiserror::Error;

use crate::storage::Segment;

pub mod body;
mod names;
mod varint;

/// The version of everything in a recording. It changes with any change of the
/// format, and is the same for logs and manifests.
///
/// 2: an event can have a payload. 3: a control can be defined by what it has begun with. All
/// else is as in 1, so all are read by one decoder.
pub const VERSION: u16 = 3;

/// The oldest version that can still be read.
pub const OLDEST_VERSION: u16 = 1;

/// Whether a recording of this version can be read.
pub(crate) fn is_readable(version: u16) -> bool {
    (OLDEST_VERSION..=VERSION).contains(&version)
}

/// The longest body. Readers refuse more before they allocate anything.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// What a block has before its body.
pub const HEAD_BYTES: usize = 16;

/// What a block has after its body.
pub const SUM_BYTES: usize = 4;

/// The longest header of a segment.
pub const HEADER_BYTES_MAX: usize = FIXED_BYTES + 128 + SUM_BYTES;

const MAGIC: [u8; 8] = *b"ddbx-log";

/// Magic, version, segment and the length of the name.
const FIXED_BYTES: usize = 15;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Entries that go on with the names and numbers of the block before.
    More = 1,
    /// Entries that refer to nothing before them.
    Fresh = 2,
    /// The segment is full, and the log goes on in the next one. No body.
    Continued = 3,
    /// The log was closed in good order. No body.
    End = 4,
}

/// What stands before the body of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What follows.
    pub kind: BlockKind,
    /// How long the body is.
    pub body_bytes: usize,
    /// The number of the first event, if there is one; else of the next to come.
    pub first: EventNumber,
}

/// What a file is that begins like a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which part of the log.
    pub segment: Segment,
    /// Whose log.
    pub process: ProcessName,
}

impl Header {
    /// The first bytes of a segment.
    pub fn encode(&self) -> Vec<u8> {
        let name = self.process.as_str().as_bytes();
        let mut bytes = Vec::with_capacity(HEADER_BYTES_MAX);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.segment.0.to_le_bytes());
        bytes.push(u8::try_from(name.len()).expect("names of processes have at most 128 bytes"));
        bytes.extend(name);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// The header, and how long it is. `bytes` is what the file begins with.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), FormatError> {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(FormatError::NotALog);
        }
        let version = array(bytes, 8).map(u16::from_le_bytes).ok_or(FormatError::CutOff)?;
        if !is_readable(version) {
            return Err(FormatError::Version { found: version });
        }
        let segment = array(bytes, 10).map(u32::from_le_bytes).ok_or(FormatError::CutOff)?;
        let name_bytes = usize::from(*bytes.get(FIXED_BYTES - 1).ok_or(FormatError::CutOff)?);
        let sum_at = FIXED_BYTES + name_bytes;
        let sum = array(bytes, sum_at).map(u32::from_le_bytes).ok_or(match sum_at {
            // No name is so long: this is not a header that was cut off.
            _ if name_bytes > 128 => FormatError::Checksum,
            _ => FormatError::CutOff,
        })?;
        if crc32fast::hash(&bytes[..sum_at]) != sum {
            return Err(FormatError::Checksum);
        }
        let name = str::from_utf8(&bytes[FIXED_BYTES..sum_at]).ok();
        let process = name.and_then(|name| ProcessName::new(name).ok());
        let process = process.ok_or(FormatError::Content)?;
        Ok((Self { segment: Segment(segment), process }, sum_at + SUM_BYTES))
    }
}

/// Appends a block that begins at byte `at` of its file.
pub fn encode_block(at: u64, kind: BlockKind, first: EventNumber, body: &[u8], out: &mut Vec<u8>) {
    debug_assert!(body.len() <= BODY_BYTES_MAX);
    let start = out.len();
    out.push(kind as u8);
    out.extend(&(body.len() as u32).to_le_bytes()[..3]);
    out.extend(first.0.to_le_bytes());
    out.extend(sum(at, &out[start..]).to_le_bytes());
    out.extend(body);
    out.extend(sum(at, &out[start..]).to_le_bytes());
}

impl Head {
    /// Reads the head of a block that begins at byte `at` of its file.
    pub fn decode(at: u64, bytes: &[u8; HEAD_BYTES]) -> Result<Self, FormatError> {
        let [kind, l0, l1, l2, f0, f1, f2, f3, f4, f5, f6, f7, check @ ..] = *bytes;
        if sum(at, &bytes[..HEAD_BYTES - SUM_BYTES]) != u32::from_le_bytes(check) {
            return Err(FormatError::Checksum);
        }
        let kind = match kind {
            1 => BlockKind::More,
            2 => BlockKind::Fresh,
            3 => BlockKind::Continued,
            4 => BlockKind::End,
            _ => return Err(FormatError::Content),
        };
        let body_bytes = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
        let has_body = matches!(kind, BlockKind::More | BlockKind::Fresh);
        if body_bytes > BODY_BYTES_MAX || has_body == (body_bytes == 0) {
            return Err(FormatError::Content);
        }
        let first = EventNumber(u64::from_le_bytes([f0, f1, f2, f3, f4, f5, f6, f7]));
        Ok(Self { kind, body_bytes, first })
    }

    /// How long the whole block is.
    pub fn block_bytes(&self) -> usize {
        HEAD_BYTES + self.body_bytes + SUM_BYTES
    }
}

/// The body of a whole block, if nothing in it has changed.
pub fn check_block(at: u64, block: &[u8]) -> Result<&[u8], FormatError> {
    let Some((content, check)) = block.split_last_chunk() else {
        return Err(FormatError::CutOff);
    };
    if sum(at, content) != u32::from_le_bytes(*check) {
        return Err(FormatError::Checksum);
    }
    content.get(HEAD_BYTES..).ok_or(FormatError::CutOff)
}

fn sum(at: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&at.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// They begin like something else.
    #[error("this is not a log of ddbx")]
    NotALog,
    /// Another version of ddbx wrote them.
    #[error(
        "this is version {found} of the format, and this ddbx reads versions {OLDEST_VERSION} to {VERSION}: use the ddbx that recorded it"
    )]
    Version {
        /// Which version.
        found: u16,
    },
    /// They stop in the middle.
    #[error("it is cut off")]
    CutOff,
    /// They have changed since they were written.
    #[error("the checksum does not fit")]
    Checksum,
    /// The sums fit, but it makes no sense: a writer with a bug, or an attempt to
    /// deceive.
    #[error("the checksum fits, but the content makes no sense")]
    Content,
}

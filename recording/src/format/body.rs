//! The body of a block: entries one after the other, in differences.
//!
//! An entry begins with a byte: its kind in the low four bits, then what is not as
//! usual. An event follows the one before it by one, has its delay, and is about the
//! same call of its control or the next one; times, departures and all else differ
//! little. Some eight bytes hold an event. Its payload, if it has one, stands right behind it.
//!
//! `encode.rs` and `decode.rs` mirror each other; what they remember from entry to
//! entry is one type, so that they cannot disagree.

mod begun;
mod decode;
mod encode;
mod peers;

pub use decode::Decoder;
pub use encode::Encoder;

use ddbx_protocol::bounded::Short;

use super::BODY_BYTES_MAX;

/// A block is closed when its body is this long; one more entry always fits.
pub(crate) const BODY_BYTES_FULL: usize = BODY_BYTES_MAX / 2;

/// An event does not follow the one before by one.
const JUMP: u8 = 1 << 4;
/// It has another delay.
const DELAY: u8 = 1 << 5;
/// It is about the call of its control that was made after the last one.
const NEXT_CALL: u8 = 1 << 6;
/// It is about yet another call of its control.
const OTHER_CALL: u8 = 1 << 7;

/// The kinds of entries, as written.
mod kind {
    pub(super) const CALL_SENT: u8 = 0;
    pub(super) const CALL_ARRIVED: u8 = 1;
    pub(super) const RETURN_SENT: u8 = 2;
    pub(super) const RETURN_ARRIVED: u8 = 3;
    pub(super) const DEADLINE_EXPIRED: u8 = 4;
    pub(super) const CANCELLED: u8 = 5;
    pub(super) const SPAWNED: u8 = 6;
    pub(super) const ENDED: u8 = 7;
    pub(super) const POINT: u8 = 8;
    pub(super) const CONNECTED: u8 = 9;
    pub(super) const ACCEPTED: u8 = 10;
    pub(super) const CLOSED: u8 = 11;
    pub(super) const CHOICE: u8 = 12;
    pub(super) const GAP: u8 = 13;
    pub(super) const FIRED: u8 = 14;
    pub(super) const ENTERED: u8 = 15;
}

/// What was said at the event before it follows: what no gap and no event begins with.
const PAYLOAD: u8 = kind::GAP | JUMP;

/// What is remembered as the last call of a control that is defined by what it has begun with:
/// the one before its first.
const BEGUN: [u32; 1] = [0];

/// What the next entry is compared with.
#[derive(Debug, Default)]
struct Memory {
    number: u64,
    at: u64,
    delay: u64,
    /// The last call of each control, by the number of its name.
    calls: Vec<Short<u32>>,
    /// The last departure of each other process, by the number of its name.
    departures: Vec<u64>,
}

impl Memory {
    fn clear(&mut self) {
        let Self { number: _, at, delay, calls, departures } = self;
        (*at, *delay) = (0, 0);
        calls.clear();
        departures.clear();
    }
}

/// The memory of a name that may just have been defined.
#[inline]
fn slot<T: Default>(slots: &mut Vec<T>, number: usize) -> &mut T {
    if number >= slots.len() {
        slots.resize_with(number + 1, T::default);
    }
    &mut slots[number]
}

//! Random numbers that a replay gives again. They are choices of the control that draws
//! them (see [`choice`](fn@crate::choice)): they are recorded, so they are not for secrets.

use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::choice::choice;

/// Any number.
///
/// ```
/// let (a, b) = (ddbx::rand::u64(), ddbx::rand::u64());
/// # assert_ne!(a, b);
/// ```
pub fn u64() -> u64 {
    choice("rand", fresh)
}

/// A number in a range, each as likely as the others.
///
/// ```
/// assert!((1..7).contains(&ddbx::rand::range(1..7)));
/// ```
///
/// # Panics
/// If the range is empty.
pub fn range(range: Range<u64>) -> u64 {
    assert!(!range.is_empty(), "there is no number in {range:?}");
    let length = range.end - range.start;
    // The last numbers, which do not fill a range, would make some more likely.
    let full = u64::MAX - u64::MAX % length;
    let drawn = || std::iter::repeat_with(fresh).find(|number| *number < full);
    range.start + choice("rand", || drawn().unwrap_or_default()) % length
}

/// Heads or tails.
pub fn bool() -> bool {
    u64() >> 63 == 1
}

/// A number from 0 up to 1, without 1.
pub fn f64() -> f64 {
    (u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Fills a buffer. Only what the bytes follow from is recorded, however many there are.
///
/// ```
/// let mut id = [0; 16];
/// ddbx::rand::fill(&mut id);
/// # assert_ne!(id, [0; 16]);
/// ```
pub fn fill(bytes: &mut [u8]) {
    let mut state = u64();
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_add(STEP);
        chunk.copy_from_slice(&mixed(state).to_le_bytes()[..chunk.len()]);
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64, begun anew in every run.
fn fresh() -> u64 {
    static STATE: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(getrandom::u64().expect("the system has random numbers")));
    mixed(STATE.fetch_add(STEP, Ordering::Relaxed))
}

fn mixed(state: u64) -> u64 {
    let once = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

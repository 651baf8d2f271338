//! How many controls have begun in a process, by what they began with: the numbers that tell
//! likes apart, in every run the same.

use std::collections::BTreeMap;

use ddbx_protocol::{ControlId, ProcessName};

use super::{ROOTS_MAX, control, numbered};
use crate::methods::Method;

/// Twice as many places: so most are where they are looked for first.
const PLACES: usize = 2 * ROOTS_MAX;

#[derive(Default)]
pub(crate) struct Roots {
    calls: Counts,
    named: BTreeMap<String, u32>,
}

impl Roots {
    /// One that begins with a call.
    pub(crate) fn of_call(&mut self, method: &Method, hash: u64) -> u32 {
        self.calls.one_more(method, hash)
    }

    /// How many have begun with calls.
    pub(crate) fn counted(&self) -> u64 {
        self.calls.total
    }

    /// One that was given a name.
    pub(crate) fn named(&mut self, process: &ProcessName, name: &str) -> ControlId {
        control(&format!("{process}/{}", numbered(name, &mut self.named)))
    }
}

/// In a busy process each call is another one, and what is known of it has to come from far away:
/// so that is in one place, and as short as it can be. A beginning is told from others by 32 bits
/// and by where they are. Two of which both are the same, among many millions, count as likes.
#[derive(Default)]
struct Counts {
    /// None at all until one is needed.
    places: Vec<Count>,
    different: usize,
    total: u64,
}

#[derive(Clone, Copy, Default)]
struct Count {
    mark: u32,
    /// 0 where nothing is.
    of: u32,
}

impl Counts {
    fn one_more(&mut self, method: &Method, hash: u64) -> u32 {
        if self.places.is_empty() {
            self.places = vec![Count::default(); PLACES];
        }
        if self.different >= ROOTS_MAX {
            self.places.fill(Count::default());
            self.different = 0;
        }
        self.total += 1;
        let mixed = mix(hash, method.nth as u64);
        let (mark, first) = (mixed as u32, (mixed >> 32) as usize);
        let mut at = first % PLACES;
        loop {
            let count = &mut self.places[at];
            if count.of == 0 {
                *count = Count { mark, of: 1 };
                self.different += 1;
                return 1;
            }
            if count.mark == mark {
                // Once it has counted all there are, it is where nothing is.
                count.of = count.of.checked_add(1).unwrap_or(1);
                return count.of;
            }
            at = (at + 1) % PLACES;
        }
    }
}

/// All bits depend on all.
fn mix(hash: u64, method: u64) -> u64 {
    let wide = u128::from(hash ^ method.wrapping_mul(0xd6e8_feb8_6659_fd93))
        * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    (wide >> 64) as u64 ^ wide as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::method;

    #[test]
    fn likes_are_counted_by_what_they_are() {
        let (buy, ask) = (method("Roots.buy"), method("Roots.ask"));
        let mut roots = Roots::default();
        // Also where hashes differ in few bits, at either end.
        let hashes: Vec<u64> = (0..5_000).flat_map(|n| [n, n << 48 | 1 << 63]).collect();
        for nth in 1..=3 {
            for hash in &hashes {
                assert_eq!(roots.of_call(buy, *hash), nth, "{hash:x}");
            }
        }
        assert!(hashes.iter().all(|hash| roots.of_call(ask, *hash) == 1));
        assert_eq!(roots.counted(), 4 * hashes.len() as u64);
    }

    #[test]
    fn counting_starts_anew_when_there_are_too_many() {
        let buy = method("Roots.buy");
        let mut roots = Roots::default();
        let hash = |n: usize| (n as u64).wrapping_mul(0x0123_4567_89ab_cdef);
        assert!((0..ROOTS_MAX).all(|n| roots.of_call(buy, hash(n)) == 1));
        assert_eq!(roots.of_call(buy, hash(ROOTS_MAX)), 1);
        assert_eq!(roots.of_call(buy, hash(0)), 1, "it was forgotten");
        assert_eq!(roots.of_call(buy, hash(0)), 2);
        assert_eq!(roots.counted(), ROOTS_MAX as u64 + 3);
    }
}

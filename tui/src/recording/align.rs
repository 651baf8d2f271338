//! How far the clocks of logs are apart.
//!
//! Each log has a clock with an origin of its own. All that is known of two of them is that
//! nothing arrives before it was sent: a message from one to the other says that the other's
//! clock must be put at least so far ahead, and an answer, at the most so far. In the middle
//! between the two neither call nor return takes less than no time, and none is made longer
//! than the other without need. If messages went only one way, the fastest is taken to have
//! needed no time.

use std::collections::BTreeMap;

/// What is known of the clocks of some logs.
pub(super) struct Apart {
    logs: usize,
    /// From one log to another: how much more must be added to the clock of the second, at
    /// the least.
    least: BTreeMap<(usize, usize), i64>,
}

impl Apart {
    pub(super) fn new(logs: usize) -> Self {
        Self { logs, least: BTreeMap::new() }
    }

    /// Something left one log and arrived in another, each by its own clock.
    pub(super) fn message(&mut self, (from, left): (usize, i64), (to, arrived): (usize, i64)) {
        let ahead = left.saturating_sub(arrived);
        if from != to {
            let least = self.least.entry((from, to)).or_insert(ahead);
            *least = ahead.max(*least);
        }
    }

    /// What is to be added to each clock. Of all logs that have to do with each other, the
    /// first event is at 0.
    pub(super) fn offsets(&self, firsts: &[i64]) -> Vec<i64> {
        let mut offsets: Vec<Option<i64>> = vec![None; self.logs];
        while let Some(first) = offsets.iter().position(Option::is_none) {
            let mut group = vec![first];
            offsets[first] = Some(0);
            // Whoever is known best comes next.
            while let Some((_, log, offset)) =
                (0..self.logs).filter_map(|log| self.next(&offsets, &group, log)).min()
            {
                offsets[log] = Some(offset);
                group.push(log);
            }
            let begins = |log: &usize| offsets[*log].unwrap_or(0).saturating_add(firsts[*log]);
            let earliest = group.iter().map(begins).min().unwrap_or_default();
            for log in group {
                offsets[log] = offsets[log].map(|offset| offset.saturating_sub(earliest));
            }
        }
        offsets.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// What must be added to the clock of a log by what is known of others, and how much
    /// that may be wrong.
    fn next(
        &self,
        offsets: &[Option<i64>],
        group: &[usize],
        log: usize,
    ) -> Option<(u64, usize, i64)> {
        if offsets[log].is_some() {
            return None;
        }
        let bound = |from: usize, to: usize| self.least.get(&(from, to)).copied();
        let least = group.iter().filter_map(|of| Some(offsets[*of]? + bound(*of, log)?)).max();
        let most = group.iter().filter_map(|of| Some(offsets[*of]? - bound(log, *of)?)).min();
        match (least, most) {
            (Some(least), Some(most)) => {
                Some((most.abs_diff(least), log, least + (most - least) / 2))
            }
            (Some(one), None) | (None, Some(one)) => Some((u64::MAX, log, one)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns_take_the_same_time() {
        let mut apart = Apart::new(2);
        apart.message((0, 1_000), (1, 100));
        apart.message((1, 200), (0, 1_300));
        // 900 at the least, 1,100 at the most.
        assert_eq!(apart.offsets(&[1_000, 100]), [-1_000, 0]);
    }

    #[test]
    fn nobody_begins_before_what_it_follows() {
        let mut apart = Apart::new(4);
        apart.message((0, 5_000), (1, 0));
        apart.message((2, 70), (1, 10));
        let offsets = apart.offsets(&[0, 0, 0, 42]);
        assert_eq!(offsets, [0, 5_000, 4_940, -42], "the last has nothing to do with them");
    }
}

//! What calls use again and again, so that they neither make room for it nor wait for
//! each other, and what can nevertheless be looked through as a whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_queue::ArrayQueue;

/// How many are kept for later. Of more than that at a time, room is made again.
const KEPT_MAX: usize = 1024;

/// All things of a kind that are in use, and some that are not.
pub struct Roster<T> {
    free: ArrayQueue<Arc<T>>,
    all: Mutex<Vec<Arc<T>>>,
}

impl<T: Default> Roster<T> {
    /// One that nobody else uses, as whoever had it before left it.
    pub fn take(&self) -> Arc<T> {
        self.free.pop().unwrap_or_else(|| self.add())
    }

    /// It is not in use any longer.
    pub fn give_back(&self, one: Arc<T>) {
        let _ = self.free.push(one);
    }

    /// Looks at all of them, those that are not in use included.
    pub fn for_each(&self, mut look: impl FnMut(&Arc<T>)) {
        let mut all = self.lock();
        // What is only here was too much to be kept.
        all.retain(|one| Arc::strong_count(one) > 1);
        all.iter().for_each(&mut look);
    }

    fn add(&self) -> Arc<T> {
        let one = Arc::<T>::default();
        let mut all = self.lock();
        if all.len() == all.capacity() {
            all.retain(|one| Arc::strong_count(one) > 1);
        }
        all.push(one.clone());
        one
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { free: ArrayQueue::new(KEPT_MAX), all: Mutex::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(roster: &Roster<u8>) -> usize {
        let mut count = 0;
        roster.for_each(|_| count += 1);
        count
    }

    #[test]
    fn what_was_given_back_is_used_again() {
        let roster = Roster::<u8>::default();
        let (one, other) = (roster.take(), roster.take());
        assert_eq!(count(&roster), 2);
        let was = Arc::as_ptr(&one);
        roster.give_back(one);
        let again = roster.take();
        assert_eq!((Arc::as_ptr(&again), count(&roster)), (was, 2));
        drop(other);
        assert_eq!(count(&roster), 1, "what was not given back is forgotten");
    }

    #[test]
    fn what_is_too_much_is_forgotten() {
        let roster = Roster::<u8>::default();
        let many: Vec<_> = (0..3 * KEPT_MAX).map(|_| roster.take()).collect();
        assert_eq!(count(&roster), 3 * KEPT_MAX);
        many.into_iter().for_each(|one| roster.give_back(one));
        assert_eq!(count(&roster), KEPT_MAX);
    }
}

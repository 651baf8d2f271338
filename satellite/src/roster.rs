//! What calls use again and again (see [`shelf`]), and what can nevertheless
//! be looked through as a whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ddbx_protocol::ProcessIndex;

use crate::shelf::{self, Kept};

/// All things of a kind that there are in a process, in use or not.
pub struct Roster<T> {
    of: ProcessIndex,
    all: Mutex<Vec<Weak<T>>>,
}

impl<T: Kept<Pointer = Arc<T>>> Roster<T> {
    /// One that nobody else uses, as whoever had it before left it; or a new one.
    #[inline]
    pub fn take(&self, new: impl FnOnce() -> T) -> Arc<T> {
        shelf::take::<T>(self.of).unwrap_or_else(|| self.add(Arc::new(new())))
    }
}

impl<T> Roster<T> {
    /// Of this process.
    pub fn new(of: ProcessIndex) -> Self {
        Self { of, all: Mutex::default() }
    }

    /// Looks at all of them, those that are not in use included.
    pub fn for_each(&self, mut look: impl FnMut(&Arc<T>)) {
        // What is gone was too much to be kept.
        self.lock().retain(|one| one.upgrade().inspect(&mut look).is_some());
    }

    /// There is one more.
    pub fn add(&self, one: Arc<T>) -> Arc<T> {
        let mut all = self.lock();
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&one));
        one
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::thread::LocalKey;

    use super::*;
    use crate::shelf::Shelves;

    thread_local! {
        static SHELVES: Shelves<Arc<u16>> = RefCell::default();
    }

    impl Kept for u16 {
        type Pointer = Arc<Self>;
        fn shelves() -> &'static LocalKey<Shelves<Arc<Self>>> {
            &SHELVES
        }
    }

    fn count(roster: &Roster<u16>) -> usize {
        let mut count = 0;
        roster.for_each(|_| count += 1);
        count
    }

    #[test]
    fn what_was_given_back_is_used_again() {
        let roster = Roster::new(ProcessIndex(1));
        let (one, other) = (roster.take(|| 1), roster.take(|| 2));
        assert_eq!(count(&roster), 2);
        let was = Arc::as_ptr(&one);
        shelf::keep::<u16>(ProcessIndex(1), one);
        let again = roster.take(|| 3);
        assert_eq!((Arc::as_ptr(&again), count(&roster)), (was, 2));
        drop(other);
        assert_eq!(count(&roster), 1, "what was not given back is forgotten");
    }
}

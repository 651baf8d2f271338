//! What calls use again and again: each thread keeps some of it for later, so that calls
//! neither make room for it nor wait for each other.

use std::cell::RefCell;
use std::thread::LocalKey;

use ddbx_protocol::ProcessIndex;

/// How many of a kind a thread keeps for a process. Of more than that at a time, room is
/// made again.
const KEPT_MAX: usize = 256;

/// For how many processes it does. A program is one, and a test may be many.
const PROCESSES_MAX: usize = 16;

/// What a thread keeps of a kind.
pub type Shelves<T> = RefCell<Vec<Shelf<T>>>;

/// What it keeps for one process.
pub struct Shelf<T> {
    of: ProcessIndex,
    kept: Vec<T>,
}

/// Something that is kept. It must not lead to the process that it is kept for, which would
/// never end then.
pub trait Kept: 'static {
    /// What leads to it: a box, or a counted pointer.
    type Pointer: 'static;
    /// Where this thread keeps it.
    #[doc(hidden)]
    fn shelves() -> &'static LocalKey<Shelves<Self::Pointer>>;
}

/// One that this thread has kept for a process.
#[inline]
pub fn take<T: Kept>(of: ProcessIndex) -> Option<T::Pointer> {
    // A thread that ends keeps nothing.
    let kept = T::shelves().try_with(|shelves| {
        let mut shelves = shelves.borrow_mut();
        // Mostly there is one process.
        match shelves.first_mut() {
            Some(shelf) if shelf.of == of => shelf.kept.pop(),
            _ => shelf_of(&mut shelves, of)?.kept.pop(),
        }
    });
    kept.ok().flatten()
}

#[inline(never)]
fn shelf_of<T>(shelves: &mut [Shelf<T>], of: ProcessIndex) -> Option<&mut Shelf<T>> {
    shelves.iter_mut().find(|shelf| shelf.of == of)
}

/// It is not in use any longer.
#[inline]
pub fn keep<T: Kept>(of: ProcessIndex, one: T::Pointer) {
    let _ = T::shelves().try_with(|shelves| {
        let mut first = shelves.borrow_mut();
        match first.first_mut() {
            Some(shelf) if shelf.of == of => shelf.put(one),
            _ => {
                drop(first);
                keep_elsewhere(shelves, of, one);
            }
        }
    });
}

#[inline(never)]
fn keep_elsewhere<T>(shelves: &Shelves<T>, of: ProcessIndex, one: T) {
    let mut shelves = shelves.borrow_mut();
    if let Some(shelf) = shelf_of(&mut shelves, of) {
        return shelf.put(one);
    }
    let oldest = (shelves.len() == PROCESSES_MAX).then(|| shelves.remove(0));
    shelves.push(Shelf { of, kept: Vec::with_capacity(KEPT_MAX) });
    if let Some(shelf) = shelves.last_mut() {
        shelf.put(one);
    }
    // What is dropped may look for a shelf itself.
    drop(shelves);
    drop(oldest);
}

impl<T> Shelf<T> {
    /// If there is room, which was made when the shelf was.
    #[inline]
    fn put(&mut self, one: T) {
        if self.kept.len() < self.kept.capacity() {
            self.kept.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static SHELVES: Shelves<u8> = RefCell::default();
    }

    impl Kept for u8 {
        type Pointer = u8;
        fn shelves() -> &'static LocalKey<Shelves<u8>> {
            &SHELVES
        }
    }

    #[test]
    fn what_was_kept_is_used_again_by_its_process() {
        let (one, other) = (ProcessIndex(1), ProcessIndex(2));
        assert_eq!(take::<u8>(one), None);
        keep::<u8>(one, 1);
        keep::<u8>(other, 2);
        assert_eq!(take::<u8>(one), Some(1));
        assert_eq!(take::<u8>(one), None);
        assert_eq!(take::<u8>(other), Some(2));
    }

    #[test]
    fn what_is_too_much_is_not_kept() {
        let many = 2 * KEPT_MAX as u64;
        (0..many).for_each(|_| keep::<u8>(ProcessIndex(1), 1));
        assert_eq!(std::iter::from_fn(|| take::<u8>(ProcessIndex(1))).count(), KEPT_MAX);
        (0..many).for_each(|of| keep::<u8>(ProcessIndex(of), 1));
        assert!((0..many).filter_map(|of| take::<u8>(ProcessIndex(of))).count() <= PROCESSES_MAX);
    }
}

//! What goes with every call stands behind a pointer, because tarpc moves messages and
//! futures many times; and the room that it points to is used again.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::LocalKey;

use ddbx_protocol::ProcessIndex;
use ddbx_satellite::shelf::{self, Kept};
use serde::{Serialize, Serializer};

/// How many rooms a thread keeps for later.
const KEPT_MAX: usize = 256;

/// The rooms that a thread keeps, with what was last in them.
pub(crate) type Rooms<M> = RefCell<Vec<Box<M>>>;

/// What goes with messages.
pub trait Pooled: Sized + 'static {
    /// Where this thread keeps room for it.
    #[doc(hidden)]
    fn rooms() -> &'static LocalKey<Rooms<Self>>;
}

/// Something in a room of its own, which goes back to the thread that drops it.
pub struct Room<M: Pooled>(Option<Box<M>>);

impl<M: Pooled> Room<M> {
    #[inline]
    pub(crate) fn new(inside: M) -> Self {
        // A thread that ends keeps nothing.
        let kept = M::rooms().try_with(|rooms| rooms.borrow_mut().pop()).ok().flatten();
        Self(Some(match kept {
            Some(mut room) => {
                *room = inside;
                room
            }
            None => Box::new(inside),
        }))
    }
}

const IS_THERE: &str = "it is there until it is dropped";

impl<M: Pooled> Deref for Room<M> {
    type Target = M;
    #[inline]
    fn deref(&self) -> &M {
        self.0.as_ref().expect(IS_THERE)
    }
}

impl<M: Pooled> Drop for Room<M> {
    #[inline]
    fn drop(&mut self) {
        let Some(room) = self.0.take() else { return };
        let _ = M::rooms().try_with(|rooms| {
            let mut rooms = rooms.borrow_mut();
            if rooms.len() < KEPT_MAX {
                rooms.push(room);
            }
        });
    }
}

impl<M: Pooled + Clone> Clone for Room<M> {
    fn clone(&self) -> Self {
        Self::new(M::clone(self))
    }
}

impl<M: Pooled + fmt::Debug> fmt::Debug for Room<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        M::fmt(self, f)
    }
}

impl<M: Pooled + Serialize> Serialize for Room<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        M::serialize(self, serializer)
    }
}

/// Something that a call and its message share, in room that is used again.
pub struct Shared<M: Reused>(Option<Arc<M>>);

/// What is used again, as it was left.
pub trait Reused: Kept + Default {
    /// The process that it is used by.
    #[doc(hidden)]
    fn of(&self) -> ProcessIndex;
}

impl<M: Reused> Shared<M> {
    /// One of a process, which is written first.
    #[inline]
    pub(crate) fn new(of: ProcessIndex, write: impl FnOnce(&mut M)) -> Self {
        let mut new = Self(Some(shelf::take(of).unwrap_or_default()));
        match new.edit() {
            Some(inside) => write(inside),
            // What is on a shelf is nobody's, so this does not happen.
            None => {
                new = Self(Some(Arc::default()));
                write(new.edit().expect("nobody else has it yet"));
            }
        }
        new
    }

    /// To change it, while it is not shared.
    #[inline]
    pub(crate) fn edit(&mut self) -> Option<&mut M> {
        Arc::get_mut(self.0.as_mut()?)
    }
}

impl<M: Reused> Deref for Shared<M> {
    type Target = M;
    #[inline]
    fn deref(&self) -> &M {
        self.0.as_ref().expect(IS_THERE)
    }
}

impl<M: Reused> Clone for Shared<M> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Reused> Drop for Shared<M> {
    #[inline]
    fn drop(&mut self) {
        // The last one keeps it. If two are the last at the same time, neither does.
        if let Some(one) = self.0.take()
            && Arc::strong_count(&one) == 1
        {
            shelf::keep(one.of(), one);
        }
    }
}

impl<M: Reused + fmt::Debug> fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        M::fmt(self, f)
    }
}

impl<M: Reused + Serialize> Serialize for Shared<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        M::serialize(self, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static ROOMS: Rooms<String> = RefCell::default();
    }

    impl Pooled for String {
        fn rooms() -> &'static LocalKey<Rooms<Self>> {
            &ROOMS
        }
    }

    #[test]
    fn room_is_used_again() {
        let kept = || ROOMS.with_borrow(Vec::len);
        let one = Room::new("one".to_owned());
        let other = one.clone();
        assert_eq!((kept(), other.as_str()), (0, "one"));
        drop(one);
        drop(other);
        assert_eq!(kept(), 2);
        let many: Vec<_> = (0..2 * KEPT_MAX).map(|n| Room::new(n.to_string())).collect();
        assert!(many.iter().enumerate().all(|(n, room)| **room == n.to_string()));
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT_MAX);
    }
}

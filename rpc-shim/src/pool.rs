//! What goes with every call stands behind a pointer, because tarpc moves messages and
//! futures many times; and the room that it points to is used again.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many rooms a thread keeps for later.
const KEPT_MAX: usize = 256;

/// The rooms that a thread keeps.
pub(crate) type Rooms<M> = RefCell<Vec<Box<Option<M>>>>;

/// What goes with calls.
pub trait Pooled: Sized + 'static {
    /// Where this thread keeps room for it.
    #[doc(hidden)]
    fn rooms() -> &'static LocalKey<Rooms<Self>>;
}

/// Something in a room of its own, which goes back to the thread that drops it.
pub struct Room<M: Pooled>(Option<Box<Option<M>>>);

impl<M: Pooled> Room<M> {
    pub(crate) fn new(inside: M) -> Self {
        // A thread that ends keeps nothing.
        let kept = M::rooms().try_with(|rooms| rooms.borrow_mut().pop()).ok().flatten();
        let mut room = kept.unwrap_or_default();
        *room = Some(inside);
        Self(Some(room))
    }

    /// Takes it out.
    pub(crate) fn into_inner(mut self) -> M {
        self.0.as_mut().and_then(|room| room.take()).expect(IS_THERE)
    }
}

const IS_THERE: &str = "it is taken out at the end";

impl<M: Pooled> Deref for Room<M> {
    type Target = M;
    fn deref(&self) -> &M {
        self.0.as_ref().and_then(|room| room.as_ref().as_ref()).expect(IS_THERE)
    }
}

impl<M: Pooled> DerefMut for Room<M> {
    fn deref_mut(&mut self) -> &mut M {
        self.0.as_mut().and_then(|room| room.as_mut().as_mut()).expect(IS_THERE)
    }
}

impl<M: Pooled> Drop for Room<M> {
    fn drop(&mut self) {
        let Some(mut room) = self.0.take() else { return };
        // What it leads to may be dropped with it, and look for room itself.
        *room = None;
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

impl<'de, M: Pooled + Deserialize<'de>> Deserialize<'de> for Room<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        M::deserialize(deserializer).map(Self::new)
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
    fn room_is_used_again_and_nothing_is_left_in_it() {
        let kept = || ROOMS.with_borrow(Vec::len);
        let one = Room::new("one".to_owned());
        let other = one.clone();
        assert_eq!((kept(), other.as_str()), (0, "one"));
        assert_eq!(one.into_inner(), "one");
        drop(other);
        assert_eq!(kept(), 2);
        assert!(ROOMS.with_borrow(|rooms| rooms.iter().all(|room| room.is_none())));
        let many: Vec<_> = (0..2 * KEPT_MAX).map(|n| Room::new(n.to_string())).collect();
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT_MAX);
    }
}

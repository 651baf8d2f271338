//! What goes with every call stands behind a pointer, because tarpc moves messages and
//! futures many times; and the room that it points to is used again.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ddbx_protocol::ProcessIndex;
use ddbx_satellite::shelf::{self, Kept};
use serde::{Serialize, Serializer};

/// How many rooms of a kind a thread keeps for later.
const KEPT_MAX: usize = 256;

/// A room, with something in it or not.
type Walls<M> = Box<Option<M>>;

thread_local! {
    /// The empty rooms that a thread keeps: a `Vec<Walls<M>>` for each kind of them, of which
    /// there are as many as there are types of messages. Few.
    static KINDS: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Does something with the empty rooms of a kind, unless the thread ends, which keeps nothing.
#[inline]
fn with_rooms<M: 'static, T>(what: impl FnOnce(&mut Vec<Walls<M>>) -> T) -> Option<T> {
    let find = |kinds: &RefCell<Vec<Box<dyn Any>>>| {
        let mut kinds = kinds.borrow_mut();
        if let Some(rooms) = kinds.iter_mut().find_map(|rooms| rooms.downcast_mut()) {
            return what(rooms);
        }
        let mut rooms = Box::<Vec<Walls<M>>>::default();
        let done = what(&mut rooms);
        kinds.push(rooms);
        done
    };
    KINDS.try_with(find).ok()
}

/// Something in a room of its own, which goes back to the thread that is done with it.
pub struct Room<M: 'static>(Option<Walls<M>>);

impl<M: 'static> Room<M> {
    #[inline]
    pub(crate) fn new(inside: M) -> Self {
        let mut walls = with_rooms(Vec::pop).flatten().unwrap_or_default();
        *walls = Some(inside);
        Self(Some(walls))
    }

    #[inline]
    pub(crate) fn into_inner(mut self) -> M {
        let inside = self.0.as_mut().and_then(|walls| walls.take());
        inside.expect(IS_THERE)
    }
}

const IS_THERE: &str = "it is there until it is taken or dropped";

impl<M: 'static> Deref for Room<M> {
    type Target = M;
    #[inline]
    fn deref(&self) -> &M {
        self.0.as_ref().and_then(|walls| walls.as_ref().as_ref()).expect(IS_THERE)
    }
}

impl<M: 'static> Drop for Room<M> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut walls) = self.0.take() else { return };
        // What was in it is the program's own, and may use such rooms itself.
        *walls = None;
        with_rooms(|rooms: &mut Vec<Walls<M>>| {
            if rooms.len() < KEPT_MAX {
                rooms.push(walls);
            }
        });
    }
}

impl<M: Clone + 'static> Clone for Room<M> {
    fn clone(&self) -> Self {
        Self::new(M::clone(self))
    }
}

impl<M: fmt::Debug + 'static> fmt::Debug for Room<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        M::fmt(self, f)
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

    #[test]
    fn room_is_used_again() {
        let kept = || with_rooms(|rooms: &mut Vec<Walls<String>>| rooms.len()).unwrap();
        let one = Room::new("one".to_owned());
        let other = one.clone();
        assert_eq!((kept(), other.as_str()), (0, "one"));
        drop(one);
        assert_eq!((other.into_inner().as_str(), kept()), ("one", 2));
        drop(Room::new(7_u8));
        assert_eq!(kept(), 2, "those of another kind are elsewhere");
        let many: Vec<_> = (0..2 * KEPT_MAX).map(|n| Room::new(n.to_string())).collect();
        assert!(many.iter().enumerate().all(|(n, room)| **room == n.to_string()));
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT_MAX);
    }
}

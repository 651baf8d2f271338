//! A message and what goes with it stand behind one pointer, because tarpc moves messages and
//! futures many times; and the room that it points to is used again.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;

/// How many rooms of a kind a thread keeps for later.
const KEPT_MAX: usize = 256;

/// What goes with a message, as it was left if it is not there, and the message. The former has
/// a place of its own, which can change places with another.
type Walls<M, T> = Box<(Box<M>, Option<T>)>;

thread_local! {
    /// The rooms that a thread keeps: a `Vec<Walls<M, T>>` for each kind of them, of which there
    /// are as many as there are types of messages. Few.
    static KINDS: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Does something with the rooms of a kind, unless the thread ends, which keeps nothing.
#[inline]
fn with_rooms<W: 'static, T>(what: impl FnOnce(&mut Vec<W>) -> T) -> Option<T> {
    let find = |kinds: &RefCell<Vec<Box<dyn Any>>>| {
        let mut kinds = kinds.borrow_mut();
        match kinds.iter_mut().find_map(|rooms| rooms.downcast_mut()) {
            Some(rooms) => what(rooms),
            None => what(add(&mut kinds)),
        }
    };
    KINDS.try_with(find).ok()
}

#[cold]
fn add<W: 'static>(kinds: &mut Vec<Box<dyn Any>>) -> &mut Vec<W> {
    kinds.push(Box::new(Vec::<W>::with_capacity(KEPT_MAX)));
    kinds.last_mut().and_then(|rooms| rooms.downcast_mut()).expect("it was put there")
}

/// A message and what goes with it, in a room of their own, which goes back to the thread that
/// is done with them. What goes with it is written where it stands, and stays there until
/// another is.
pub struct Room<M: Default + 'static, T: 'static>(Option<Walls<M, T>>);

impl<M: Default + 'static, T: 'static> Room<M, T> {
    /// One without a message, and with what another had.
    #[inline]
    pub(crate) fn vacant() -> Self {
        Self(Some(with_rooms(Vec::pop).flatten().unwrap_or_default()))
    }

    /// The message comes.
    #[inline]
    pub(crate) fn with(mut self, body: T) -> Self {
        self.walls().1 = Some(body);
        self
    }

    /// The message goes.
    #[inline]
    pub(crate) fn take_body(&mut self) -> T {
        self.walls().1.take().expect(IS_THERE)
    }

    /// What goes with it.
    #[inline]
    pub(crate) fn meta_mut(&mut self) -> &mut Box<M> {
        &mut self.walls().0
    }

    /// Both.
    #[inline]
    pub(crate) fn parts(&self) -> (&M, &T) {
        let (meta, body) = &**self.0.as_ref().expect(IS_THERE);
        (meta, body.as_ref().expect(IS_THERE))
    }

    /// Both, of which the former can be written.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut Box<M>, &T) {
        let (meta, body) = self.walls();
        (meta, body.as_ref().expect(IS_THERE))
    }

    #[inline]
    fn walls(&mut self) -> &mut (Box<M>, Option<T>) {
        self.0.as_mut().expect(IS_THERE)
    }
}

const IS_THERE: &str = "it is there until it is taken or dropped";

impl<M: Default + 'static, T: 'static> Drop for Room<M, T> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut walls) = self.0.take() else { return };
        // The message is the program's own, and may use such rooms itself.
        walls.1 = None;
        with_rooms(|rooms: &mut Vec<Walls<M, T>>| {
            if rooms.len() < KEPT_MAX {
                rooms.push(walls);
            }
        });
    }
}

impl<M: Clone + Default + 'static, T: Clone + 'static> Clone for Room<M, T> {
    fn clone(&self) -> Self {
        let (meta, body) = self.parts();
        let mut room = Self::vacant();
        **room.meta_mut() = meta.clone();
        room.with(body.clone())
    }
}

impl<M: Default + fmt::Debug + 'static, T: fmt::Debug + 'static> fmt::Debug for Room<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again() {
        let kept = || with_rooms(|rooms: &mut Vec<Walls<u8, String>>| rooms.len()).unwrap();
        let mut one = Room::vacant().with("one".to_owned());
        **one.meta_mut() = 1_u8;
        let mut other = one.clone();
        assert_eq!((kept(), other.parts()), (0, (&1, &"one".to_owned())));
        drop(one);
        assert_eq!(other.take_body(), "one");
        drop(other);
        assert_eq!(kept(), 2);
        drop(Room::<u8, u8>::vacant().with(7));
        assert_eq!(kept(), 2, "those of another kind are elsewhere");
        let room = |n: usize| Room::<u8, String>::vacant().with(n.to_string());
        let many: Vec<_> = (0..2 * KEPT_MAX).map(room).collect();
        assert!(many.iter().enumerate().all(|(n, room)| *room.parts().1 == n.to_string()));
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT_MAX);
        assert!(Room::<u8, String>::vacant().walls().1.is_none(), "no message stays");
    }
}

//! What goes with every call stands behind a pointer, because tarpc moves messages and
//! futures many times; and what it points to is used again.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// How many of a kind a thread keeps for later.
const KEPT_MAX: usize = 256;

/// What a thread keeps of a kind.
pub(crate) type Slips<M> = RefCell<Vec<Box<M>>>;

/// What is added to messages, of whatever type they are.
pub trait Pooled: Default + 'static {
    /// Where this thread keeps it.
    #[doc(hidden)]
    fn slips() -> &'static LocalKey<RefCell<Vec<Box<Self>>>>;
}

/// What is added to a message, beside it, or nothing. Its room goes back to the thread that is done with it;
/// what it says is written where it stands, and stays there until another says something else.
pub struct Slip<M: Pooled>(Option<Box<M>>);

impl<M: Pooled> Slip<M> {
    /// Nothing is added.
    pub(crate) const NONE: Self = Self(None);

    /// One on which another has written.
    #[inline]
    pub(crate) fn used() -> Self {
        let kept = M::slips().try_with(|slips| slips.borrow_mut().pop());
        // A thread that ends keeps nothing.
        Self(Some(kept.ok().flatten().unwrap_or_default()))
    }

    /// What it says, if it is there.
    #[inline]
    pub(crate) fn get(&self) -> Option<&M> {
        self.0.as_deref()
    }

    /// Where it stands: it can change places with another.
    #[inline]
    pub(crate) fn place(&mut self) -> Option<&mut Box<M>> {
        self.0.as_mut()
    }
}

impl<M: Pooled> Deref for Slip<M> {
    type Target = M;
    #[inline]
    fn deref(&self) -> &M {
        self.0.as_ref().expect(IS_THERE)
    }
}

impl<M: Pooled> DerefMut for Slip<M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut M {
        self.place().expect(IS_THERE)
    }
}

impl<M: Pooled> Drop for Slip<M> {
    #[inline]
    fn drop(&mut self) {
        let Some(slip) = self.0.take() else { return };
        let _ = M::slips().try_with(|slips| {
            let mut slips = slips.borrow_mut();
            if slips.len() < KEPT_MAX {
                slips.push(slip);
            }
        });
    }
}

impl<M: Pooled + Clone> Clone for Slip<M> {
    fn clone(&self) -> Self {
        self.get().map_or(Self::NONE, |meta| meta.clone().into())
    }
}

impl<M: Pooled> From<M> for Slip<M> {
    #[inline]
    fn from(meta: M) -> Self {
        let mut slip = Self::used();
        *slip = meta;
        slip
    }
}

impl<M: Pooled + fmt::Debug> fmt::Debug for Slip<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const IS_THERE: &str = "it is there until it is dropped";

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static NUMBERS: Slips<u8> = RefCell::default();
    }

    impl Pooled for u8 {
        fn slips() -> &'static LocalKey<Slips<Self>> {
            &NUMBERS
        }
    }

    #[test]
    fn a_slip_is_used_again() {
        let kept = || NUMBERS.with_borrow(Vec::len);
        let one = Slip::from(1_u8);
        let other = one.clone();
        assert_eq!((kept(), *other), (0, 1));
        drop((one, other));
        assert_eq!((kept(), *Slip::<u8>::used()), (2, 1));
        let many: Vec<Slip<u8>> = (0..2 * KEPT_MAX).map(|_| Slip::used()).collect();
        assert_eq!(kept(), 0);
        drop(many);
        assert_eq!(kept(), KEPT_MAX);
    }
}

//! A place that one after the other has. Whoever enters it makes it its own, alone; from then on
//! any number of guests look at it, and when the last one has gone it is vacant for the next.
//!
//! What a mutex, a counted pointer and a look whether it is the only one would do is one number
//! here, which changes when somebody enters and when that one leaves: every call does both, and
//! each change holds up the processor. That is why there is unsafe code, in this file alone. What
//! it rests on:
//!
//! - There is at most one [`Vacant`] of a place, and none while there is a [`Guest`]: it is made
//!   with the place or by the last guest who goes, and it is gone when somebody enters. Only it
//!   leads to what is in the place as something that can be changed.
//! - Guests come of guests, or by [`Place::visit`], which lets nobody in unless the one who
//!   entered is still there: and that one is a guest itself.
//! - Whoever goes releases what it has seen, and the last one acquires that before the place
//!   is vacant.

#![expect(unsafe_code, reason = "see above")]

use std::borrow::Borrow;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// That the one who entered is still there. The rest is the number of guests.
const PRESENT: u32 = 1 << 31;

/// More guests cannot be told from [`PRESENT`].
const GUESTS_MAX: u32 = PRESENT - 1;

pub(crate) struct Place<T> {
    state: AtomicU32,
    what: UnsafeCell<T>,
}

// SAFETY: guests on all threads look at it, so it must be `Sync`; and one thread after the other
// changes it, so it must be `Send`. Nobody does both at once: see above.
unsafe impl<T: Send + Sync> Sync for Place<T> {}

/// What can be left by all.
pub(crate) trait Left: Sized {
    /// The last guest goes, after whoever entered.
    fn is_left(vacant: Vacant<Self>);
}

/// Nobody is there, and nobody comes but by this.
pub(crate) struct Vacant<T>(Arc<Place<T>>);

/// Somebody is there.
pub(crate) struct Guest<T: Left>(ManuallyDrop<Arc<Place<T>>>);

impl<T> Place<T> {
    /// A guest more, if the one who entered is still there. Whoever has entered before this is
    /// called is seen, and so is all that it did before.
    pub(crate) fn visit(self: &Arc<Self>) -> Option<Guest<T>>
    where
        T: Left,
    {
        let one_more = |state: u32| {
            let (is_open, guests) = (state & PRESENT != 0, state & GUESTS_MAX);
            (is_open && guests != 0 && guests != GUESTS_MAX).then_some(state + 1)
        };
        let (done, not) = (Ordering::SeqCst, Ordering::SeqCst);
        let came = self.state.fetch_update(done, not, one_more).is_ok();
        came.then(|| Guest(ManuallyDrop::new(self.clone())))
    }
}

impl<T> Vacant<T> {
    /// A place in which nobody has been.
    pub(crate) fn new(what: T) -> Self {
        Self(Arc::new(Place { state: AtomicU32::new(0), what: UnsafeCell::new(what) }))
    }

    /// Which place.
    pub(crate) fn place(&self) -> &Arc<Place<T>> {
        &self.0
    }

    /// What is there.
    #[inline]
    pub(crate) fn what(&mut self) -> &mut T {
        // SAFETY: there is no guest, and no other `Vacant` of this place.
        unsafe { &mut *self.0.what.get() }
    }

    /// Somebody enters, and can be visited from now on: whoever looks after this sees it.
    #[inline]
    pub(crate) fn enter(self) -> Guest<T>
    where
        T: Left,
    {
        self.0.state.store(PRESENT | 1, Ordering::SeqCst);
        Guest(ManuallyDrop::new(self.0))
    }
}

impl<T: Left> Guest<T> {
    /// The one who entered goes. If it was alone the place is vacant; otherwise nobody comes
    /// any more, and this is a guest like the others.
    #[inline]
    pub(crate) fn leaves(self) -> Result<Vacant<T>, Self> {
        let (done, not) = (Ordering::SeqCst, Ordering::Relaxed);
        if self.0.state.compare_exchange(PRESENT | 1, 0, done, not).is_err() {
            self.0.state.fetch_and(!PRESENT, Ordering::SeqCst);
            return Err(self);
        }
        let mut gone = ManuallyDrop::new(self);
        // SAFETY: it is not dropped, so this is taken once.
        Ok(Vacant(unsafe { ManuallyDrop::take(&mut gone.0) }))
    }
}

impl<T: Left> Deref for Guest<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as long as there is a guest nobody changes it.
        unsafe { &*self.0.what.get() }
    }
}

impl<T: Left> Borrow<T> for Guest<T> {
    #[inline]
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: Left> Clone for Guest<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Guests that are forgotten are counted too. As with counted pointers, so many are no
        // mistake that could be survived.
        if self.0.state.fetch_add(1, Ordering::Relaxed) & GUESTS_MAX >= GUESTS_MAX / 2 {
            abort();
        }
        Self(self.0.clone())
    }
}

impl<T: Left> Drop for Guest<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is dropped once.
        let place = unsafe { ManuallyDrop::take(&mut self.0) };
        // Whoever entered and was dropped, not asked to leave, is not there any more either.
        if place.state.fetch_sub(1, Ordering::Release) & GUESTS_MAX == 1 {
            fence(Ordering::Acquire);
            place.state.store(0, Ordering::SeqCst);
            T::is_left(Vacant(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// Both are the same, except while somebody changes them.
    #[derive(Default)]
    struct Twins(u64, u64);

    static LEFT: Mutex<Vec<Vacant<Twins>>> = Mutex::new(Vec::new());

    impl Left for Twins {
        fn is_left(vacant: Vacant<Self>) {
            LEFT.lock().unwrap().push(vacant);
        }
    }

    #[test]
    fn a_place_is_vacant_when_the_last_one_has_gone() {
        /// Says nothing when it is left: it is dropped then.
        struct Quiet(u8);
        impl Left for Quiet {
            fn is_left(mut vacant: Vacant<Self>) {
                assert_eq!(vacant.what().0, 7);
            }
        }
        let mut vacant = Vacant::new(Quiet(3));
        let place = vacant.place().clone();
        assert!(place.visit().is_none(), "nobody has entered");
        vacant.what().0 = 7;
        let entered = vacant.enter();
        let visitor = place.visit().unwrap();
        assert_eq!([&*entered, &*visitor].map(|quiet| quiet.0), [7, 7]);
        let Err(entered) = entered.leaves() else { panic!("there is a visitor") };
        assert!(place.visit().is_none(), "whoever entered has left");
        drop(entered.clone());
        drop(entered);
        assert_eq!(Arc::strong_count(&place), 2);
        drop(visitor);
        assert_eq!(Arc::strong_count(&place), 1);
        let entered = Vacant::new(Quiet(7)).enter();
        assert!(entered.leaves().is_ok(), "it was alone");
    }

    /// However many look at it meanwhile, on whatever thread.
    #[test]
    fn nobody_looks_while_it_is_changed() {
        let first = Vacant::new(Twins::default());
        let (place, done) = (first.place().clone(), AtomicBool::new(false));
        LEFT.lock().unwrap().push(first);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let Some(guest) = place.visit() else { continue };
                        let other = guest.clone();
                        drop(guest);
                        let Twins(one, another) = *other;
                        assert_eq!(one, another);
                        assert!(one >= last);
                        last = one;
                    }
                });
            }
            let mut entries = 0_u64;
            while entries < 20_000 {
                let Some(mut vacant) = LEFT.lock().unwrap().pop() else {
                    thread::yield_now();
                    continue;
                };
                entries += 1;
                let twins = vacant.what();
                twins.0 = entries;
                twins.1 = entries;
                match vacant.enter().leaves() {
                    Ok(vacant) => LEFT.lock().unwrap().push(vacant),
                    Err(guest) => {
                        let Twins(one, another) = *guest;
                        assert_eq!(one, another);
                    }
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(LEFT.lock().unwrap().len(), 1, "it was never there twice");
    }
}

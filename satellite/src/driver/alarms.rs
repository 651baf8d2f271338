//! Moments that tasks wait for. Nearly all of them never come: the answer is there before
//! its deadline. So setting one and taking it back costs next to nothing, and nobody keeps
//! them in order: the satellite's thread looks through all of them when the earliest that
//! there was may have come.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;
use std::time::Duration;

use ddbx_protocol::{ProcessIndex, RealTime};

use crate::roster::Roster;
use crate::shelf::{self, Kept, Shelves};

/// How long the thread sleeps at least, however many moments come: to look through very
/// many of them takes its time, too.
pub(super) const PAUSE: Duration = Duration::from_micros(250);

/// It is not set.
const NEVER: i64 = i64::MAX;

/// It has come.
const RANG: i64 = i64::MAX - 1;

/// It comes at the end of a replay.
const AT_THE_END: i64 = i64::MAX - 2;

pub(super) struct Alarms {
    of: ProcessIndex,
    roster: Roster<Slot>,
    /// When the thread looks next.
    looks_at: AtomicI64,
}

/// Where an alarm is, or was and another will be.
struct Slot {
    of: ProcessIndex,
    at: AtomicI64,
    bell: Bell,
}

/// Whom an alarm wakes. It keeps the last waker that it was given, also when it has rung: to
/// take that away would cost more than the little room of a task that is over, and a task that
/// waits again and again has to say so only once.
#[derive(Default)]
struct Bell {
    waker: Mutex<Option<Waker>>,
    /// Which one that is: as long as it is kept no other has these.
    is_for: [AtomicUsize; 2],
}

impl Bell {
    /// Only whoever has the alarm says this.
    #[inline]
    fn is_for(&self, waker: &Waker) {
        let is_for = [waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr()];
        if self.is_for.each_ref().map(|word| word.load(Ordering::Relaxed)) != is_for {
            self.is_for_another(waker, is_for);
        }
    }

    #[cold]
    fn is_for_another(&self, waker: &Waker, is_for: [usize; 2]) {
        let before = self.lock().replace(waker.clone());
        for (word, is) in self.is_for.iter().zip(is_for) {
            word.store(is, Ordering::Relaxed);
        }
        // Not while it is locked: this may drop a task, and with it all that is in it.
        drop(before);
    }

    fn ring(&self) {
        let waker = self.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static SLOTS: Shelves<Arc<Slot>> = const { RefCell::new(Vec::new()) };
}

impl Kept for Slot {
    type Pointer = Arc<Self>;
    fn shelves() -> &'static LocalKey<Shelves<Arc<Self>>> {
        &SLOTS
    }
}

impl Alarms {
    pub(super) fn new(of: ProcessIndex) -> Self {
        Self { of, roster: Roster::new(of), looks_at: AtomicI64::new(NEVER) }
    }

    /// One that is not set yet.
    #[inline]
    pub(super) fn take(&self) -> Alarm {
        let new = || Slot { of: self.of, at: AtomicI64::new(NEVER), bell: Bell::default() };
        Alarm(Some(self.roster.take(new)))
    }

    /// Sets it. True if the thread would sleep through it, and must be told.
    ///
    /// The thread forgets when it wanted to look, then looks, then decides when to look
    /// again. So of the thread and whoever sets an alarm at the same time at least one
    /// sees what the other has done.
    #[inline]
    pub(super) fn set(&self, alarm: &Alarm, at: RealTime) -> bool {
        let at = at.as_nanos().min(AT_THE_END - 1);
        alarm.slot().at.store(at, Ordering::SeqCst);
        at < self.looks_at.load(Ordering::SeqCst)
            && at < self.looks_at.fetch_min(at, Ordering::SeqCst)
    }

    /// Wakes whoever waits for a moment that has come, if it is time to look; when it is
    /// time to look again.
    pub(super) fn ring(&self, now: RealTime) -> Option<RealTime> {
        let now = now.as_nanos();
        let looks_at = self.looks_at.load(Ordering::SeqCst);
        if looks_at > now {
            return (looks_at != NEVER).then(|| RealTime::from_nanos(looks_at));
        }
        self.looks_at.store(NEVER, Ordering::SeqCst);
        let mut next = NEVER;
        self.roster.for_each(|slot| {
            let at = slot.at.load(Ordering::SeqCst);
            // If it is set anew meanwhile, whoever does so says when to look.
            let (seq, any) = (Ordering::SeqCst, Ordering::Relaxed);
            if at <= now && slot.at.compare_exchange(at, RANG, seq, any).is_ok() {
                slot.bell.ring();
            } else if at < AT_THE_END {
                next = next.min(at);
            }
        });
        let next = self.looks_at.fetch_min(next, Ordering::SeqCst).min(next);
        (next != NEVER).then(|| RealTime::from_nanos(next))
    }

    /// A replay is at its end: those ring that wait for it.
    pub(super) fn ring_at_the_end(&self) {
        self.roster.for_each(|slot| {
            let (seq, any) = (Ordering::SeqCst, Ordering::Relaxed);
            if slot.at.compare_exchange(AT_THE_END, RANG, seq, any).is_ok() {
                slot.bell.ring();
            }
        });
    }
}

/// A moment that somebody waits for, until this is dropped.
pub struct Alarm(Option<Arc<Slot>>);

impl Alarm {
    /// Waits until it has come.
    pub(super) async fn rang(&self) {
        poll_fn(|context| self.poll_rang(context)).await
    }

    /// Whether it has come; if not, whoever asks is woken then.
    #[inline]
    pub fn poll_rang(&self, context: &mut Context<'_>) -> Poll<()> {
        let slot = self.slot();
        let has_come = || slot.at.load(Ordering::SeqCst) == RANG;
        if has_come() {
            return Poll::Ready(());
        }
        slot.bell.is_for(context.waker());
        if has_come() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether it rings, or has rung.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.slot().at.load(Ordering::Relaxed) != NEVER
    }

    /// It rings at the end of a replay.
    pub(super) fn set_for_the_end(&self) {
        self.slot().at.store(AT_THE_END, Ordering::SeqCst);
    }

    /// It has rung: whoever asks is not woken, but told.
    pub(super) fn has_rung(&self) {
        self.slot().at.store(RANG, Ordering::SeqCst);
    }

    /// It is not to ring any longer.
    #[inline]
    pub fn unset(&self) {
        self.slot().at.store(NEVER, Ordering::Release);
    }

    #[inline]
    fn slot(&self) -> &Slot {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Alarm {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.at.store(NEVER, Ordering::Release);
            shelf::keep::<Slot>(slot.of, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Wake;

    use super::*;

    fn at(nanos: i64) -> RealTime {
        RealTime::from_nanos(nanos)
    }

    fn rang(alarm: &Alarm) -> bool {
        pin!(alarm.rang()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_thread_is_told_only_of_what_it_would_sleep_through() {
        let alarms = Alarms::new(ProcessIndex(1));
        let (one, other) = (alarms.take(), alarms.take());
        assert!(alarms.set(&one, at(100)));
        assert!(!alarms.set(&other, at(200)));
        drop(one);
        assert_eq!(alarms.ring(at(50)), Some(at(100)), "it does not look before its time");
        assert_eq!(alarms.ring(at(100)), Some(at(200)), "what was given back is not looked at");
        assert!(!rang(&other));
        assert_eq!(alarms.ring(at(200)), None);
        assert!(rang(&other));
        assert!(alarms.set(&other, at(300)) && !rang(&other), "it can be set again");
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Sleeper(AtomicUsize);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn whoever_asked_last_is_woken_every_time() {
        let alarms = Alarms::new(ProcessIndex(1));
        let alarm = alarms.take();
        let sleepers = [Arc::<Sleeper>::default(), Arc::default()];
        let asks = |nth: usize| {
            let waker = Waker::from(sleepers[nth].clone());
            alarm.poll_rang(&mut Context::from_waker(&waker)).is_ready()
        };
        let woken = || sleepers.each_ref().map(|sleeper| sleeper.0.load(Ordering::SeqCst));
        for (round, nth) in [0, 0, 1, 0].into_iter().enumerate() {
            let before = woken();
            alarms.set(&alarm, at(round as i64));
            assert!(!asks(1 - nth) && !asks(nth));
            alarms.ring(at(round as i64));
            assert!(asks(nth));
            let by = [0, 1].map(|sleeper| woken()[sleeper] - before[sleeper]);
            assert_eq!(by, if nth == 0 { [1, 0] } else { [0, 1] });
        }
    }

    /// None is lost, however they are set while the thread looks.
    #[test]
    fn all_of_them_ring() {
        let alarms = Alarms::new(ProcessIndex(1));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    alarms.ring(at(1_000));
                }
            });
            let setters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for round in 0..20_000 {
                            let alarm = alarms.take();
                            alarms.set(&alarm, at(round % 1_000));
                            while !rang(&alarm) {
                                std::hint::spin_loop();
                            }
                            drop(alarm);
                        }
                    })
                })
                .collect();
            setters.into_iter().for_each(|setter| setter.join().unwrap());
            done.store(true, Ordering::SeqCst);
        });
    }
}

//! The processes in which controls have begun that others bring here: each name is kept once, for
//! every call of such a control says it again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use ddbx_protocol::{ProcessIndex, ProcessName};

use crate::methods::place_of;

/// How many are kept, for as long as the program. Whoever comes from others has its name made
/// where it is said.
pub(crate) const HOMES_MAX: usize = 4 * 1024;

/// How many a thread finds at once.
const NEAR: usize = 16;

/// All that are kept.
static HOMES: Mutex<BTreeSet<&'static ProcessName>> = Mutex::new(BTreeSet::new());

/// A home as a process knows it.
#[derive(Clone, Copy)]
struct Known {
    by: ProcessIndex,
    home: ProcessIndex,
    /// Which of all names that the process has met: one may change.
    since: u64,
    name: &'static ProcessName,
}

thread_local! {
    static NEAR_NAMES: RefCell<[Option<&'static ProcessName>; NEAR]> =
        const { RefCell::new([None; NEAR]) };
    static NEAR_HOMES: RefCell<[Option<Known>; NEAR]> = const { RefCell::new([None; NEAR]) };
}

/// The home of this name, which another process has said, if it is one and there is room.
pub(crate) fn of_others(name: &str) -> Option<&'static ProcessName> {
    let place = place_of(name);
    let known = NEAR_NAMES.try_with(|near| near.borrow()[place % NEAR]).ok().flatten();
    known.filter(|known| known.as_str() == name).or_else(|| {
        let kept = keep(ProcessName::new(name).ok()?)?;
        // A thread that ends keeps nothing.
        let _ = NEAR_NAMES.try_with(|near| near.borrow_mut()[place % NEAR] = Some(kept));
        Some(kept)
    })
}

/// What `by`, which has met so many names, calls a process; if there is room for that.
pub(crate) fn known(
    (by, since): (ProcessIndex, u64),
    home: ProcessIndex,
    name: impl FnOnce() -> ProcessName,
) -> Option<&'static ProcessName> {
    let place = (by.0 ^ home.0) as usize % NEAR;
    let known = NEAR_HOMES.try_with(|near| near.borrow()[place]).ok().flatten();
    let known = known.filter(|known| (known.by, known.home, known.since) == (by, home, since));
    known.map(|known| known.name).or_else(|| {
        let name = keep(name())?;
        let known = Known { by, home, since, name };
        let _ = NEAR_HOMES.try_with(|near| near.borrow_mut()[place] = Some(known));
        Some(name)
    })
}

#[cold]
fn keep(name: ProcessName) -> Option<&'static ProcessName> {
    let mut homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = homes.get(&name) {
        return Some(kept);
    }
    (homes.len() < HOMES_MAX).then(|| {
        let kept: &'static ProcessName = Box::leak(Box::new(name));
        homes.insert(kept);
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let shop = of_others("shop").unwrap();
        assert!(std::ptr::eq(shop, of_others("shop").unwrap()) && of_others("a b").is_none());
        let name = |name: &'static str| move || ProcessName::new(name).unwrap();
        let by = (ProcessIndex(1), 1);
        assert!(std::ptr::eq(shop, known(by, ProcessIndex(2), name("shop")).unwrap()));
        let again = known(by, ProcessIndex(2), || unreachable!("it is near"));
        assert!(std::ptr::eq(shop, again.unwrap()));
        // It has got another one.
        let renamed = known((ProcessIndex(1), 2), ProcessIndex(2), name("shop#2"));
        assert_eq!(renamed.unwrap().as_str(), "shop#2");
    }
}

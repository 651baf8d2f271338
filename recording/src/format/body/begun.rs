//! The controls that have begun with calls, as the writer has defined them.
//!
//! In many programs each request begins one, and after its few events it is never heard of
//! again. So they are not looked up among all that were ever named, but in a small table in
//! which a new one takes the place of an old one. One that was forgotten is defined again,
//! which costs some bytes and means the same.
//!
//! Most that are looked up are new, at places that nothing foretells: what is read there has
//! to come from far away, which takes longer than all else that is done with a note. So the
//! table has of each only what tells it from nearly all others, and what they are lies in
//! their order: the new one beside the last one, and those that are met again near both.

use std::ptr;

use crate::note::Beginning;

/// How many are remembered.
const PLACES: usize = 2 * 1024;

#[derive(Debug, Default)]
pub(super) struct Begun {
    /// By what they are. None at all until one is needed.
    places: Vec<Place>,
    /// By their numbers: what they are, and the number.
    known: Vec<Option<(Beginning, u32)>>,
}

/// Where one was put. Only what lies there under its number says whether it still is that one.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    mark: u32,
    number: u32,
}

impl Begun {
    /// The number of one, if it is remembered.
    #[inline]
    pub(super) fn find(&self, wanted: &Beginning) -> Option<usize> {
        let (found, number) = self.at(wanted.hash, wanted.nth)?;
        let is_same = found.hash == wanted.hash
            && found.nth == wanted.nth
            && found.home == wanted.home
            && ptr::eq(found.method, wanted.method);
        is_same.then_some(number)
    }

    /// The number of the one that has this name, if it is remembered.
    pub(super) fn named(
        &self,
        name: &str,
        is_home: impl FnOnce(&Beginning, &str) -> bool,
    ) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let (before, nth) = name.rsplit_once('-')?;
        let (before, hash) = before.rsplit_once('-')?;
        let (home, method) = before.split_once('/')?;
        let (hash, nth) = (u64::from_str_radix(hash, 16).ok()?, nth.parse().ok()?);
        let (found, number) = self.at(hash, nth)?;
        let is_same = found.hash == hash
            && found.nth == nth
            && found.method.as_str() == method
            && is_home(found, home);
        // The digits may have been others that mean the same.
        let is_text = || name.ends_with(&format!("-{hash:016x}-{nth}"));
        (is_same && is_text()).then_some(number)
    }

    /// One has been defined.
    #[inline]
    pub(super) fn is_defined(&mut self, beginning: Beginning, number: usize) {
        if self.places.is_empty() {
            self.places = vec![Place::default(); PLACES];
            self.known = vec![None; PLACES];
        }
        // A table of names holds fewer than can be counted so.
        let (mark, short) = (mark(beginning.hash, beginning.nth), number as u32);
        self.places[place(beginning.hash, beginning.nth)] = Place { mark, number: short };
        self.known[number % PLACES] = Some((beginning, short));
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.known.clear();
    }

    #[inline]
    fn at(&self, hash: u64, nth: u32) -> Option<(&Beginning, usize)> {
        let place = self.places.get(place(hash, nth))?;
        if place.mark != mark(hash, nth) {
            return None;
        }
        let (beginning, number) = self.known.get(place.number as usize % PLACES)?.as_ref()?;
        (*number == place.number).then_some((beginning, *number as usize))
    }
}

/// Likes, which are numbered, lie side by side.
#[inline]
fn place(hash: u64, nth: u32) -> usize {
    ((hash >> 32) ^ hash).wrapping_add(u64::from(nth)) as usize % PLACES
}

/// Those that come to lie at one place mostly differ in this.
#[inline]
fn mark(hash: u64, nth: u32) -> u32 {
    ((hash >> 32) as u32).wrapping_add(nth)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use ddbx_protocol::{MethodName, ProcessIndex};

    use super::*;

    static BUY: LazyLock<MethodName> = LazyLock::new(|| MethodName::new("Shop.buy").unwrap());
    static ASK: LazyLock<MethodName> = LazyLock::new(|| MethodName::new("Shop.ask").unwrap());

    fn beginning(hash: u64, nth: u32) -> Beginning {
        Beginning { home: ProcessIndex(1), method: &BUY, hash, nth }
    }

    #[test]
    fn one_is_found_by_all_that_it_is() {
        let mut begun = Begun::default();
        let one = beginning(7, 1);
        assert_eq!(begun.find(&one), None);
        begun.is_defined(one, 3);
        assert_eq!(begun.find(&one), Some(3));
        let others = [
            beginning(7, 2),
            beginning(6, 2),
            Beginning { home: ProcessIndex(2), ..one },
            Beginning { method: &ASK, ..one },
        ];
        assert!(others.iter().all(|other| begun.find(other).is_none()));
        // In its place.
        begun.is_defined(Beginning { home: ProcessIndex(2), ..one }, 4);
        assert_eq!(begun.find(&one), None);
        begun.clear();
        assert_eq!(begun.find(&Beginning { home: ProcessIndex(2), ..one }), None);
    }

    #[test]
    fn one_is_found_until_another_takes_its_place() {
        let mut begun = Begun::default();
        let numbers = 3 * PLACES;
        let hash = |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for number in 0..numbers {
            begun.is_defined(beginning(hash(number), 1), number);
            assert_eq!(begun.find(&beginning(hash(number), 1)), Some(number));
        }
        let found: Vec<_> =
            (0..numbers).filter_map(|number| begun.find(&beginning(hash(number), 1))).collect();
        assert!(found.len() > PLACES / 2 && found[0] >= numbers - PLACES);
        assert!(found.iter().is_sorted());
    }

    /// Their places and marks are the same.
    #[test]
    fn likes_are_told_apart_by_what_they_are() {
        let mut begun = Begun::default();
        let (one, other) = (beginning(0, 2), beginning(1 << 32 | 1 << 20, 1));
        assert_eq!(place(one.hash, one.nth), place(other.hash, other.nth));
        assert_eq!(mark(one.hash, one.nth), mark(other.hash, other.nth));
        begun.is_defined(one, 0);
        assert_eq!((begun.find(&one), begun.find(&other)), (Some(0), None));
    }

    #[test]
    fn one_is_found_by_its_name() {
        let mut begun = Begun::default();
        begun.is_defined(beginning(0xabc, 12), 5);
        let find = |name: &str| begun.named(name, |_, home| home == "shop");
        assert_eq!(find("shop/Shop.buy-0000000000000abc-12"), Some(5));
        for other in [
            "shop/Shop.buy-0000000000000ABC-12",
            "shop/Shop.buy-abc-12",
            "shop/Shop.buy-0000000000000abc-012",
            "shop/Shop.buy-0000000000000abc-13",
            "shop/Shop.buy-0000000000000abd-12",
            "shop/Shop.ask-0000000000000abc-12",
            "stop/Shop.buy-0000000000000abc-12",
            "shop/Shop.buy-0000000000000abc-12/child",
            "shop/main",
        ] {
            assert_eq!(find(other), None, "{other}");
        }
    }
}

//! The methods that are called: each is named once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ddbx_protocol::MethodName;
use ddbx_satellite::logic::breakpoints::Groups;

use crate::naming::clean;

/// How many methods are told apart.
pub(crate) const METHODS_MAX: usize = 4 * 1024;

/// How many of them others may name.
pub(crate) const METHODS_OF_OTHERS_MAX: usize = 2 * 1024;

/// A method, with all that calls of it need to know of its name. A program has as many as
/// were written down, and they stay.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: MethodName,
    /// Where breakpoints are looked out for.
    pub(crate) groups: Groups,
    /// Which of all.
    pub(crate) nth: usize,
}

/// How many methods a thread finds at once.
const NEAR: usize = 16;

/// All methods that were ever named.
static METHODS: Mutex<BTreeMap<&str, &'static Method>> = Mutex::new(BTreeMap::new());

thread_local! {
    static NEAR_METHODS: RefCell<[Option<&'static Method>; NEAR]> =
        const { RefCell::new([None; NEAR]) };
}

/// The method of this name. tarpc's names are identifiers and a dot.
#[inline]
pub(crate) fn method(name: &str) -> &'static Method {
    near(name).unwrap_or_else(|place| keep_near(place, find_method(name)))
}

/// The same of a name that another process has said, if it is one and is known here. They do
/// not fill the room that those need that are called here.
pub(crate) fn of_others(name: &str) -> Option<&'static Method> {
    near(name)
        .or_else(|place| find_of_others(name).map(|found| keep_near(place, found)).ok_or(()))
        .ok()
}

/// The method of this name, if this thread knows it; or where it is to be kept.
#[inline]
fn near(name: &str) -> Result<&'static Method, usize> {
    let place = place_of(name);
    let known = NEAR_METHODS.try_with(|near| near.borrow()[place % NEAR]).ok().flatten();
    known.filter(|method| method.name.as_str() == name).ok_or(place)
}

/// Where a name is looked for first: names mostly differ in their last letters.
#[inline]
pub(crate) fn place_of(name: &str) -> usize {
    let last = name.as_bytes().last_chunk().copied().unwrap_or_default();
    (u32::from_le_bytes(last).wrapping_mul(0x9e37_79b1) >> 16) as usize
}

#[cold]
fn keep_near(place: usize, method: &'static Method) -> &'static Method {
    // A thread that ends keeps nothing.
    let _ = NEAR_METHODS.try_with(|near| near.borrow_mut()[place % NEAR] = Some(method));
    method
}

#[cold]
fn find_of_others(name: &str) -> Option<&'static Method> {
    let (known, count) = {
        let methods = METHODS.lock().unwrap_or_else(PoisonError::into_inner);
        (methods.get(name).copied(), methods.len())
    };
    known.or_else(|| {
        let is_one = MethodName::new(name).is_ok();
        (is_one && count < METHODS_OF_OTHERS_MAX).then(|| find_method(name))
    })
}

#[cold]
fn find_method(name: &str) -> &'static Method {
    let mut methods = METHODS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(method) = methods.get(name) {
        return method;
    }
    // A name that cannot be one is no reason to stop the program: it goes on under one like
    // it. Names of another kind than those that were written down may not end.
    let (name, nth) = match methods.len() {
        METHODS_MAX.. => ("other", METHODS_MAX),
        nth => (name, nth),
    };
    if let Some(method) = methods.get(name) {
        return method;
    }
    let checked = MethodName::new(name).or_else(|_| MethodName::new(clean(name)));
    let checked = checked.expect("a cleaned name");
    let groups = Groups::of(checked.as_str());
    let method: &'static Method = Box::leak(Box::new(Method { name: checked, groups, nth }));
    let key =
        if method.name.as_str() == name { method.name.as_str() } else { name.to_owned().leak() };
    methods.insert(key, method);
    method
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_named_once() {
        let paper = method("News.paper");
        assert_eq!(paper.name.as_str(), "News.paper");
        assert!(std::ptr::eq(paper, method(&format!("News.{}", "paper"))));
        let others = (0..200).map(|n| method(&format!("News.{n}")));
        assert!(others.enumerate().all(|(n, method)| method.name.as_str() == format!("News.{n}")));
        assert!(std::ptr::eq(paper, method("News.paper")));
        assert_eq!(method("a b").name.as_str(), "a-b");
        assert!(std::ptr::eq(method("a b"), method("a b")));
        assert!(of_others("").is_none() && of_others("b c").is_none());
        assert!(std::ptr::eq(of_others("News.paper").unwrap(), paper));
        assert_eq!(of_others("News.weekly").unwrap().name.as_str(), "News.weekly");
    }
}

//! The methods that are called: each is named once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ddbx_protocol::MethodName;
use ddbx_satellite::logic::breakpoints::Groups;

use crate::naming::clean;

/// How many methods are told apart.
pub(crate) const METHODS_MAX: usize = 4 * 1024;

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
    // Names of methods mostly differ in their last letters.
    let place = name.bytes().rev().take(3).fold(name.len(), |sum, byte| sum * 7 + byte as usize);
    let found = NEAR_METHODS.try_with(|near| {
        let mut near = near.borrow_mut();
        let place = &mut near[place % NEAR];
        match place {
            Some(method) if method.name.as_str() == name => *method,
            _ => *place.insert(find_method(name)),
        }
    });
    found.unwrap_or_else(|_| find_method(name))
}

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
    }
}

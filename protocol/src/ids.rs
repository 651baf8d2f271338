//! Who and what: every id is its own type.
//!
//! Names come from the program and from the wire, so each is checked when it is
//! made, deserialisation included: not empty, bounded, and without control
//! characters or the characters that breakpoint specs and paths are made of.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;
use thiserror::Error;

use crate::bounded::{self, Short};

/// Defines a checked name: `$limit` bytes at most, none of `$forbidden`.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $limit:literal, $forbidden:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and makes the name.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
                check($what, name.as_ref(), $limit, $forbidden)?;
                Ok(Self(Arc::from(name.as_ref())))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Name;
                impl Visitor<'_> for Name {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a {}", $what)
                    }
                    fn visit_str<E: de::Error>(self, name: &str) -> Result<$type, E> {
                        $type::new(name).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

name! {
    /// The virtual name of a process, stable from run to run: `inventory`, and
    /// `inventory#2` for its second replica.
    ProcessName, "process name", 128, "/:@*()"
}

name! {
    /// The name of a session: the base name of its socket.
    SessionName, "session name", 64, "/:@*()"
}

name! {
    /// An RPC method as tarpc names it: `Inventory.reserve`.
    MethodName, "method name", 256, "/:@*()"
}

name! {
    /// The label of a point in user code.
    PointLabel, "point label", 128, "/:@*()"
}

name! {
    /// What a recorded choice is about.
    ChoiceName, "choice name", 128, "/:@*()"
}

name! {
    /// A thread of control, as a path of stable names from its home process on:
    /// `gateway/main`, `gateway/main/poller`. The same in every run.
    ControlId, "control id", 4096, ""
}

impl ControlId {
    /// The control `name` that starts in `process`.
    pub fn root(process: &ProcessName, name: &str) -> Result<Self, InvalidName> {
        check("control name", name, 256, "/")?;
        Self::new(format!("{process}/{name}"))
    }

    /// The `nth` control that starts in `process` with such a call. What it is made of has been
    /// checked, so it is not checked again: there is one for each call from outside.
    pub fn of_call(process: &ProcessName, method: &MethodName, hash: u64, nth: u32) -> Self {
        let mut digits = [0; 16];
        for (nth, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(hash >> (60 - 4 * nth)) as usize % 16];
        }
        let mut text = SmallVec::<[u8; 128]>::new();
        text.extend_from_slice(process.as_str().as_bytes());
        text.push(b'/');
        text.extend_from_slice(method.as_str().as_bytes());
        text.push(b'-');
        text.extend_from_slice(&digits);
        text.push(b'-');
        let mut number = [0; 10];
        let mut first = number.len();
        let mut left = nth;
        while left > 0 || first == number.len() {
            first -= 1;
            number[first] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        text.extend_from_slice(&number[first..]);
        Self(Arc::from(str::from_utf8(&text).expect("names and digits are text")))
    }

    /// A control spawned by this one.
    pub fn child(&self, name: &str) -> Result<Self, InvalidName> {
        check("control name", name, 256, "/")?;
        Self::new(format!("{self}/{name}"))
    }

    /// The process in which the control started.
    pub fn home(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

/// One RPC of a control.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId {
    /// Who calls.
    pub control: ControlId,
    /// Which of its calls.
    pub path: CallPath,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}!{}", self.control, self.path)
    }
}

/// Which call of a control: `3.1` is the first call that is made while its third one
/// is handled. So each has a number of its own, wherever it is made, and the number is
/// the same in every run.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPath(Short<u32>);

impl Clone for CallPath {
    // All at once, not one after the other; and mostly there is one.
    #[inline]
    fn clone(&self) -> Self {
        match *self.0 {
            [nth] => Self::root(nth),
            _ => Self(Short::from_slice(&self.0)),
        }
    }

    #[inline]
    fn clone_from(&mut self, other: &Self) {
        match *other.0 {
            [nth] => self.set_root(nth),
            _ => *self = other.clone(),
        }
    }
}

impl CallPath {
    /// How deep calls may nest.
    pub const DEPTH_MAX: usize = 256;

    /// The `nth` call that a control makes where it began.
    #[inline]
    pub fn root(nth: u32) -> Self {
        Self(Short::from_slice(&[nth]))
    }

    /// Makes it the `nth` call that a control makes where it began: in place, since mostly it is
    /// one of those.
    #[inline]
    pub fn set_root(&mut self, nth: u32) {
        match &mut *self.0 {
            [only] => *only = nth,
            _ => *self = Self::root(nth),
        }
    }

    /// The `nth` call made while this one is handled. Beyond all depth it is taken for
    /// this one.
    pub fn child(&self, nth: u32) -> Self {
        match self.0.len() {
            Self::DEPTH_MAX.. => self.clone(),
            _ => {
                let mut path = self.clone();
                path.0.push(nth);
                path
            }
        }
    }

    /// The call in whose handler this one is made; none where its control began.
    pub fn outer(&self) -> Option<Self> {
        let (_, outer) = self.0.split_last()?;
        (!outer.is_empty()).then(|| Self(Short::from_slice(outer)))
    }

    /// A path of these numbers: one at least, and not too many.
    pub fn new(numbers: &[u32]) -> Option<Self> {
        (1..=Self::DEPTH_MAX).contains(&numbers.len()).then(|| Self(Short::from_slice(numbers)))
    }

    /// The numbers, the outermost call first.
    #[inline]
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// Whether this call is made while `outer` is handled, or, without one, where the
    /// control began.
    pub fn is_made_in(&self, outer: Option<&Self>) -> bool {
        self.0.split_last().is_some_and(|(_, before)| before == outer.map_or(&[][..], |o| &o.0))
    }
}

impl fmt::Display for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, number) in self.0.iter().enumerate() {
            let dot = if depth == 0 { "" } else { "." };
            write!(f, "{dot}{number}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CallPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.numbers().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CallPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = bounded::short::<_, _, { Self::DEPTH_MAX }>(deserializer)?;
        match path.is_empty() {
            true => Err(de::Error::custom("the path of a call cannot be empty")),
            false => Ok(Self(path)),
        }
    }
}

/// The place of an event in the total order of its process, counted from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EventNumber(pub u64);

/// One event of the whole program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// Where it happened.
    pub process: ProcessName,
    /// Its place in that process.
    pub number: EventNumber,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.number.0)
    }
}

/// A connection: the `nth` that `client` makes, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId {
    /// The process that dialled.
    pub client: ProcessName,
    /// Which of its connections.
    pub nth: u32,
}

/// A breakpoint that the user asked for, in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BreakpointId(pub u32);

/// Something that is made to wait, in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HoldId(pub u64);

impl fmt::Display for BreakpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidName {
    /// Nothing was given.
    #[error("a {what} cannot be empty")]
    Empty {
        /// Which kind of name.
        what: &'static str,
    },
    /// Too many bytes.
    #[error("a {what} can have at most {limit} bytes; this one has {len}")]
    TooLong {
        /// Which kind of name.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
        /// How many there are.
        len: usize,
    },
    /// A character that has another meaning, or none that can be shown.
    #[error("a {what} cannot contain {character:?}")]
    Forbidden {
        /// Which kind of name.
        what: &'static str,
        /// The first such character.
        character: char,
    },
}

fn check(what: &'static str, name: &str, limit: usize, forbidden: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if name.len() > limit {
        return Err(InvalidName::TooLong { what, limit, len: name.len() });
    }
    // Nearly all names are plain, and are read with every call.
    if name.bytes().all(|byte| byte.is_ascii_graphic() && !forbidden.as_bytes().contains(&byte)) {
        return Ok(());
    }
    let refused = |c: &char| c.is_control() || c.is_whitespace() || forbidden.contains(*c);
    match name.chars().find(refused) {
        Some(character) => Err(InvalidName::Forbidden { what, character }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_when_made_and_when_read() {
        assert!(ProcessName::new("inventory#2").is_ok());
        for bad in ["", "a b", "a/b", "a:b", "a@b", "*", "a\u{1b}[2J", &"x".repeat(129)] {
            assert!(ProcessName::new(bad).is_err(), "{bad:?}");
            let json = serde_json::to_string(bad).unwrap();
            assert!(serde_json::from_str::<ProcessName>(&json).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_call_is_a_path_of_numbers() {
        let third = CallPath::root(3);
        let inner = third.child(1);
        assert_eq!(inner.to_string(), "3.1");
        assert!(inner.is_made_in(Some(&third)) && third.is_made_in(None));
        assert!(!inner.is_made_in(None) && !third.is_made_in(Some(&inner)));
        let text = serde_json::to_string(&inner).unwrap();
        assert_eq!(serde_json::from_str::<CallPath>(&text).unwrap(), inner);
        let long = serde_json::to_string(&vec![1; CallPath::DEPTH_MAX + 1]).unwrap();
        for bad in ["[]", &long] {
            assert!(serde_json::from_str::<CallPath>(bad).is_err());
        }
        let deep = (0..300).fold(third, |path, _| path.child(1));
        assert_eq!(deep.numbers().len(), CallPath::DEPTH_MAX);
    }

    #[test]
    fn a_control_is_a_path_from_its_home() {
        let gateway = ProcessName::new("gateway").unwrap();
        let main = ControlId::root(&gateway, "main").unwrap();
        let child = main.child("poller").unwrap();
        assert_eq!(child.as_str(), "gateway/main/poller");
        assert_eq!(child.home(), "gateway");
        let place = MethodName::new("Orders.place").unwrap();
        for (hash, nth) in [(0, 0), (0xfedc_ba98_7654_3210, u32::MAX), (7, 10)] {
            let called = ControlId::of_call(&gateway, &place, hash, nth);
            assert_eq!(called.as_str(), format!("gateway/Orders.place-{hash:016x}-{nth}"));
            assert_eq!(ControlId::new(called.as_str()), Ok(called));
        }
        assert_eq!(
            main.child("a/b"),
            Err(InvalidName::Forbidden { what: "control name", character: '/' })
        );
    }
}

//! Names once, then numbers.
//!
//! A name is referred to by how many names were defined after it: what is in use
//! was mostly defined lately, so this stays small also in a program that makes a
//! new control for every request. A definition says with how much of which recent
//! name it begins; names that are made alike often differ only at their ends. A control that
//! has begun with a call is not a text at all, but what its name is made of.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ptr;

use ddbx_protocol::{ChoiceName, ControlId, InvalidName, MethodName, PointLabel, ProcessName};
use foldhash::fast::RandomState;

use super::FormatError;
use super::varint::{self, Input, Out};

/// How much a table can hold; after that the writer starts all tables anew. Readers
/// refuse more.
const NAMES_MAX: usize = 64 * 1024;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A definition can refer to so many names before it.
const RECENT: usize = 32;

/// Stands where a definition says which of them: it is made of something else.
const MADE: usize = RECENT;

/// How many names of a kind the writer remembers. One that was forgotten is defined again: that
/// costs less than to keep all those that never come back.
const REMEMBERED: usize = 16 * 1024;

/// How many names of a kind are found at once.
const NEAR: usize = 64;

/// No name of any kind is longer.
const NAME_BYTES_MAX: usize = 4096;

/// A name that a log defines.
pub(super) trait Name: Clone + Eq + Hash {
    fn text(&self) -> &str;
    fn parse(text: &str) -> Result<Self, InvalidName>;
}

macro_rules! names {
    ($($type:ty),*) => {$(
        impl Name for $type {
            fn text(&self) -> &str {
                self.as_str()
            }
            fn parse(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    )*};
}

names!(ChoiceName, ControlId, MethodName, PointLabel, ProcessName);

/// The names of one kind as the writer has defined them.
#[derive(Debug)]
pub(super) struct Defined<N> {
    numbers: HashMap<N, usize, RandomState>,
    /// Some of those that were last used, by where their text lies: the same name is mostly
    /// also the same text.
    near: Vec<Option<(N, usize)>>,
    /// The last ones that were defined as texts, the latest first.
    recent: VecDeque<(N, usize)>,
    count: usize,
    bytes: usize,
    is_full: bool,
}

impl<N: Name> Defined<N> {
    /// Appends a reference, and the definition if there was none. `reserved` values
    /// mean something else at this place. Returns the number of the name.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, name: &N, reserved: u64) -> usize {
        match self.find(name) {
            Some(number) => self.put_again(out, number, reserved),
            None => self.define(out, name, reserved),
        }
    }

    /// The number of a name, if it was defined.
    #[inline]
    pub(super) fn find(&mut self, name: &N) -> Option<usize> {
        let place = name.text().as_ptr().addr() / 16 % NEAR;
        if let Some(Some((near, number))) = self.near.get(place)
            && ptr::eq(near.text(), name.text())
        {
            return Some(*number);
        }
        let number = *self.numbers.get(name)?;
        self.is_near(name, number);
        Some(number)
    }

    /// Appends a reference to a name that was defined.
    #[inline(always)]
    pub(super) fn put_again(&self, out: &mut impl Out, number: usize, reserved: u64) -> usize {
        varint::put(out, reserved + (self.count - number) as u64);
        number
    }

    /// Appends the definition of a name that was not defined.
    pub(super) fn define(&mut self, out: &mut Vec<u8>, name: &N, reserved: u64) -> usize {
        let text = name.text();
        let (back, same) = self.most_alike(text);
        for number in [reserved, back as u64, same as u64, (text.len() - same) as u64] {
            varint::put(out, number);
        }
        out.extend(&text.as_bytes()[same..]);
        let number = self.count_one(text.len());
        self.recent.truncate(RECENT - 1);
        self.recent.push_front((name.clone(), number));
        self.is_defined(name, number);
        number
    }

    /// Appends the beginning of a definition that says what a name is made of, which has at
    /// most so many bytes. Its number is found by whoever has made it.
    #[inline(always)]
    pub(super) fn define_made(&mut self, out: &mut impl Out, bytes: usize) -> usize {
        out.byte(0);
        out.byte(MADE as u8);
        self.count_one(bytes)
    }

    /// This name has been defined.
    pub(super) fn is_defined(&mut self, name: &N, number: usize) {
        if self.numbers.len() >= REMEMBERED {
            self.numbers.clear();
        }
        self.numbers.insert(name.clone(), number);
        self.is_near(name, number);
    }

    fn is_near(&mut self, name: &N, number: usize) {
        self.near.resize(NEAR, None);
        self.near[name.text().as_ptr().addr() / 16 % NEAR] = Some((name.clone(), number));
    }

    fn count_one(&mut self, bytes: usize) -> usize {
        self.count += 1;
        self.bytes += bytes;
        self.is_full = self.count + 2 > NAMES_MAX || self.bytes + 2 * NAME_BYTES_MAX > BYTES_MAX;
        self.count - 1
    }

    /// Which recent name begins most like this one, and how many bytes are the same.
    fn most_alike(&self, text: &str) -> (usize, usize) {
        let mut best = (0, 0);
        let text = text.as_bytes();
        for (name, number) in &self.recent {
            let (back, name) = (self.count - 1 - number, name.text().as_bytes());
            if back >= RECENT {
                break;
            }
            // Most do not begin more like it than another did.
            if name.get(best.1) == text.get(best.1) {
                let same = same_bytes(name, text);
                if same > best.1 {
                    best = (back, same);
                }
            }
        }
        best
    }

    /// Whether there may be no room for the names of one more entry.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.near.clear();
        self.recent.clear();
        (self.count, self.bytes, self.is_full) = (0, 0, false);
    }
}

/// With how many bytes both begin: eight at a time, because every definition asks for it many
/// times.
fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    let (ones, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    for (nth, (a, b)) in ones.iter().zip(others).enumerate() {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return 8 * nth + differ.trailing_zeros() as usize / 8;
        }
    }
    let whole = 8 * ones.len().min(others.len());
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

impl<N> Default for Defined<N> {
    fn default() -> Self {
        Self {
            numbers: HashMap::default(),
            near: Vec::new(),
            recent: VecDeque::new(),
            count: 0,
            bytes: 0,
            is_full: false,
        }
    }
}

/// The names of one kind as the reader has met them.
#[derive(Debug)]
pub(super) struct Met<N> {
    names: Vec<N>,
    bytes: usize,
}

impl<N: Name> Met<N> {
    /// Reads a reference; none for a reserved value other than the last one.
    pub(super) fn get(
        &mut self,
        input: &mut Input<'_>,
        reserved: u64,
    ) -> Result<Option<(usize, &N)>, FormatError> {
        self.get_or_make(input, reserved, |_| Err(FormatError::Content))
    }

    /// The same, of names that can also be made of something else.
    pub(super) fn get_or_make(
        &mut self,
        input: &mut Input<'_>,
        reserved: u64,
        make: impl FnOnce(&mut Input<'_>) -> Result<N, FormatError>,
    ) -> Result<Option<(usize, &N)>, FormatError> {
        let Some(reference) = input.number()?.checked_sub(reserved) else {
            return Ok(None);
        };
        let number = match usize::try_from(reference).map_err(|_| FormatError::Content)? {
            0 => self.define(input, make)?,
            back => self.names.len().checked_sub(back).ok_or(FormatError::Content)?,
        };
        Ok(Some((number, &self.names[number])))
    }

    fn define(
        &mut self,
        input: &mut Input<'_>,
        make: impl FnOnce(&mut Input<'_>) -> Result<N, FormatError>,
    ) -> Result<usize, FormatError> {
        let name = match input.count(MADE)? {
            MADE => make(input)?,
            back => self.read(input, back)?,
        };
        self.bytes += name.text().len();
        if self.names.len() >= NAMES_MAX || self.bytes > BYTES_MAX {
            return Err(FormatError::Content);
        }
        self.names.push(name);
        Ok(self.names.len() - 1)
    }

    fn read(&self, input: &mut Input<'_>, back: usize) -> Result<N, FormatError> {
        let like = self.names.iter().nth_back(back).map_or("", N::text);
        let same = input.count(like.len())?;
        let rest = input.count(NAME_BYTES_MAX - same)?;
        let bytes = [&like.as_bytes()[..same], input.bytes(rest)?].concat();
        let text = str::from_utf8(&bytes).map_err(|_| FormatError::Content)?;
        N::parse(text).map_err(|_| FormatError::Content)
    }
}

impl<N> Default for Met<N> {
    fn default() -> Self {
        Self { names: Vec::new(), bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_forgotten_is_defined_again() {
        let name = |nth: usize| ControlId::new(format!("p/{nth}")).unwrap();
        let (mut defined, mut out) = (Defined::default(), Vec::new());
        // Made anew each time, so it is not found by where it lies.
        assert_eq!(defined.put(&mut out, &name(0), 0), 0);
        assert_eq!(defined.put(&mut out, &name(0), 0), 0);
        (1..=REMEMBERED).for_each(|nth| _ = defined.put(&mut out, &name(nth), 0));
        assert_eq!(defined.put(&mut out, &name(REMEMBERED), 0), REMEMBERED);
        assert_eq!(defined.put(&mut out, &name(0), 0), REMEMBERED + 1);
        assert!(defined.numbers.len() <= REMEMBERED && !defined.is_full());
    }

    #[test]
    fn bytes_are_the_same_up_to_the_first_that_differs() {
        let text = b"gateway/Orders.place-0123456789abcdef-1";
        for length in 0..=text.len() {
            assert_eq!(same_bytes(&text[..length], text), length);
            assert_eq!(same_bytes(text, &text[..length]), length);
            let mut other = *text;
            if let Some(byte) = other.get_mut(length) {
                *byte ^= 0x80;
                assert_eq!(same_bytes(text, &other), length);
            }
        }
    }
}

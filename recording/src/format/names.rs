//! Names once, then numbers.
//!
//! A name is referred to by how many names were defined after it: what is in use
//! was mostly defined lately, so this stays small also in a program that makes a
//! new control for every request. A definition says with how much of which recent
//! name it begins; the ids of such controls often differ only at their ends.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use ddbx_protocol::{ChoiceName, ControlId, InvalidName, MethodName, PointLabel, ProcessName};
use foldhash::fast::RandomState;

use super::FormatError;
use super::varint::{self, Input};

/// How much a table can hold; after that the writer starts all tables anew. Readers
/// refuse more.
const NAMES_MAX: usize = 64 * 1024;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A definition can refer to so many names before it.
const RECENT: usize = 32;

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
    /// The last ones, the latest first.
    recent: VecDeque<N>,
    bytes: usize,
}

impl<N: Name> Defined<N> {
    /// Appends a reference, and the definition if there was none. `reserved` values
    /// mean something else at this place. Returns the number of the name.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, name: &N, reserved: u64) -> usize {
        let len = self.numbers.len();
        if let Some(&number) = self.numbers.get(name) {
            varint::put(out, reserved + (len - number) as u64);
            return number;
        }
        let text = name.text();
        let (back, same) = self.most_alike(text);
        for number in [reserved, back as u64, same as u64, (text.len() - same) as u64] {
            varint::put(out, number);
        }
        out.extend(&text.as_bytes()[same..]);
        self.bytes += text.len();
        self.recent.truncate(RECENT - 1);
        self.recent.push_front(name.clone());
        self.numbers.insert(name.clone(), len);
        len
    }

    /// Which recent name begins most like this one, and how many bytes are the same.
    fn most_alike(&self, text: &str) -> (usize, usize) {
        let mut best = (0, 0);
        let text = text.as_bytes();
        for (back, name) in self.recent.iter().enumerate() {
            let name = name.text().as_bytes();
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
    pub(super) fn is_full(&self) -> bool {
        self.numbers.len() + 2 > NAMES_MAX || self.bytes + 2 * NAME_BYTES_MAX > BYTES_MAX
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.recent.clear();
        self.bytes = 0;
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
        Self { numbers: HashMap::default(), recent: VecDeque::new(), bytes: 0 }
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
        let Some(reference) = input.number()?.checked_sub(reserved) else {
            return Ok(None);
        };
        let number = match usize::try_from(reference).map_err(|_| FormatError::Content)? {
            0 => self.define(input)?,
            back => self.names.len().checked_sub(back).ok_or(FormatError::Content)?,
        };
        Ok(Some((number, &self.names[number])))
    }

    fn define(&mut self, input: &mut Input<'_>) -> Result<usize, FormatError> {
        let back = input.count(RECENT - 1)?;
        let like = self.names.iter().nth_back(back).map_or("", N::text);
        let same = input.count(like.len())?;
        let rest = input.count(NAME_BYTES_MAX)?;
        let len = same + rest;
        if self.names.len() >= NAMES_MAX || self.bytes + len > BYTES_MAX || len > NAME_BYTES_MAX {
            return Err(FormatError::Content);
        }
        let bytes = [&like.as_bytes()[..same], input.bytes(rest)?].concat();
        let text = str::from_utf8(&bytes).map_err(|_| FormatError::Content)?;
        self.names.push(N::parse(text).map_err(|_| FormatError::Content)?);
        self.bytes += len;
        Ok(self.names.len() - 1)
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

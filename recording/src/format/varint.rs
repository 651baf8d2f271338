//! Numbers in as few bytes as they need: seven bits each, the lowest first.

use super::FormatError;

/// Where bytes go.
pub(super) trait Out {
    fn byte(&mut self, byte: u8);
}

impl Out for Vec<u8> {
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// A few bytes at the end of many. There is room for all of them at once, or each of them
/// would be asked for its own; and they are put where they stay, for what is written in small
/// pieces and read in a large one must be waited for.
///
/// Whoever puts something else there gets all bytes, and gives them back. If they were lent
/// instead, it would have to be looked up for each of these where they lie.
#[derive(Debug)]
pub(super) struct Few {
    out: Vec<u8>,
    at: usize,
}

impl Few {
    /// More than the longest note: four numbers of at most ten bytes, four names of at most
    /// three, and what a control has begun with.
    const ROOM: [u8; 96] = [0; 96];

    #[inline(always)]
    pub(super) fn at_the_end_of(out: Vec<u8>) -> Self {
        let at = out.len();
        let mut out = match out.capacity() - at < Self::ROOM.len() {
            true => with_room(out),
            false => out,
        };
        out.extend_from_slice(&Self::ROOM);
        Self { out, at }
    }

    /// That was all.
    #[inline(always)]
    pub(super) fn end(mut self) -> Vec<u8> {
        self.out.truncate(self.at);
        self.out
    }

    /// Something that may be long comes here.
    #[inline(always)]
    pub(super) fn put<R>(self, put: impl FnOnce(Vec<u8>) -> (Vec<u8>, R)) -> (Self, R) {
        let (out, result) = put(self.end());
        (Self::at_the_end_of(out), result)
    }

    #[inline(always)]
    pub(super) fn extend<const N: usize>(&mut self, bytes: [u8; N]) {
        self.out[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }
}

/// As much more as there is, as a vector does it.
#[cold]
fn with_room(mut out: Vec<u8>) -> Vec<u8> {
    out.reserve(Few::ROOM.len());
    out
}

impl Out for Few {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.out[self.at] = byte;
        self.at += 1;
    }
}

/// Appends a number.
#[inline(always)]
pub(super) fn put(out: &mut impl Out, mut value: u64) {
    while value >= 0x80 {
        out.byte(value as u8 | 0x80);
        value >>= 7;
    }
    out.byte(value as u8);
}

/// Appends by how much `value` differs from `base`, near zero in either direction
/// being short. The difference wraps, so that any two numbers have one.
#[inline(always)]
pub(super) fn put_difference(out: &mut impl Out, base: u64, value: u64) {
    let difference = value.wrapping_sub(base) as i64;
    put(out, ((difference << 1) ^ (difference >> 63)) as u64);
}

/// What is left of a body.
#[derive(Debug, Default)]
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, FormatError> {
        let (&first, rest) = self.0.split_first().ok_or(FormatError::Content)?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(FormatError::Content)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(FormatError::Content)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn number(&mut self) -> Result<u64, FormatError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::Content)
    }

    /// A number of things or bytes, at most `max`.
    pub(super) fn count(&mut self, max: usize) -> Result<usize, FormatError> {
        let count = usize::try_from(self.number()?).map_err(|_| FormatError::Content)?;
        if count > max { Err(FormatError::Content) } else { Ok(count) }
    }

    pub(super) fn difference(&mut self, base: u64) -> Result<u64, FormatError> {
        let coded = self.number()?;
        Ok(base.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, base: u64) {
            let mut out = Vec::new();
            put(&mut out, value);
            put_difference(&mut out, base, value);
            let mut input = Input(&out);
            prop_assert_eq!(input.number(), Ok(value));
            prop_assert_eq!(input.difference(base), Ok(value));
            prop_assert!(input.0.is_empty());
            let mut few = Few::at_the_end_of(Vec::new());
            put(&mut few, value);
            put_difference(&mut few, base, value);
            let same = few.end();
            prop_assert_eq!(&same, &out);
            let mut few = Few::at_the_end_of(same);
            put(&mut few, value);
            let (few, ()) = few.put(|mut same| {
                put_difference(&mut same, base, value);
                (same, ())
            });
            prop_assert_eq!(few.end(), out.repeat(2));
        }

        #[test]
        fn any_bytes_are_a_number_or_an_error(bytes: Vec<u8>) {
            let _ = Input(&bytes).number();
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(Input(&[0xff; 11]).number(), Err(FormatError::Content));
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Input(&largest).number(), Ok(u64::MAX));
        largest[9] = 2;
        assert_eq!(Input(&largest).number(), Err(FormatError::Content));
    }
}

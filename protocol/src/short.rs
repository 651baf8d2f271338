//! Lists that are short in nearly all programs: those need no room of their own.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use smallvec::SmallVec;

/// A list that is mostly short.
pub type Short<T> = SmallVec<[T; 4]>;

/// Reads a list of at most `MAX`: room is made only for what is there.
pub(crate) fn bounded<'de, T, D, const MAX: usize>(deserializer: D) -> Result<Short<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_seq(Bounded::<T, MAX>(PhantomData))
}

struct Bounded<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Bounded<T, MAX> {
    type Value = Short<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut short = Short::new();
        while let Some(item) = items.next_element()? {
            if short.len() == MAX {
                return Err(de::Error::invalid_length(MAX + 1, &self));
            }
            short.push(item);
        }
        Ok(short)
    }
}

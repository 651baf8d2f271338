//! Lists from outside: no more is read than there can be, and no memory is taken for
//! what is only claimed.
//!
//! A frame bounds the bytes of a message, not what they turn into: an event of eight
//! bytes takes two hundred in memory. So each list that others send has a limit of its
//! own, which is what its sender keeps to.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use smallvec::SmallVec;

/// Reads a list of at most `MAX` elements: for `#[serde(deserialize_with = …)]`.
pub fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<Vec<T>, T, MAX>(PhantomData))
}

/// A list that is short in nearly all programs, and then needs no room of its own.
pub type Short<T> = SmallVec<[T; 4]>;

/// Reads such a list.
pub(crate) fn short<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Short<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<Short<T>, T, MAX>(PhantomData))
}

struct List<L, T, const MAX: usize>(PhantomData<(L, T)>);

impl<'de, L, T, const MAX: usize> Visitor<'de> for List<L, T, MAX>
where
    L: Default + Extend<T>,
    T: Deserialize<'de>,
{
    type Value = L;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<L, A::Error> {
        let claimed = elements.size_hint().unwrap_or(0);
        if claimed > MAX {
            return Err(de::Error::invalid_length(claimed, &self));
        }
        let (mut list, mut length) = (L::default(), 0);
        while let Some(element) = elements.next_element()? {
            if length == MAX {
                return Err(de::Error::invalid_length(MAX + 1, &self));
            }
            list.extend([element]);
            length += 1;
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use bincode::Options;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Few(#[serde(deserialize_with = "list::<_, _, 3>")] Vec<u8>);

    #[test]
    fn a_list_has_as_many_as_there_can_be() {
        assert_eq!(serde_json::from_str::<Few>("[1,2,3]").unwrap(), Few(vec![1, 2, 3]));
        let error = serde_json::from_str::<Few>("[1,2,3,4]").unwrap_err().to_string();
        assert!(error.contains("a list of at most 3"), "{error}");
    }

    /// Five bytes that claim fifty million elements without size.
    #[test]
    fn a_claim_alone_is_refused() {
        #[derive(Debug, Deserialize)]
        struct Nothings(
            #[serde(deserialize_with = "list::<_, _, 1000>")]
            #[expect(dead_code, reason = "never made")]
            Vec<()>,
        );
        let claim = [&[252][..], &50_000_000u32.to_le_bytes()].concat();
        let error = bincode::DefaultOptions::new().deserialize::<Nothings>(&claim).unwrap_err();
        assert!(error.to_string().contains("50000000"), "{error}");
    }
}

//! What a wrapped message looks like on the wire.
//!
//! The first byte is a marker that is never the number of a method: a wrapped end
//! that meets a plain one fails to decode, and never calls another method. Without
//! a session the marker is all that is added.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;

use ddbx_protocol::Delay;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use tarpc::{RequestName, ServerError};

use crate::pool::{Room, Shared};

mod meta;
mod packed;

pub(crate) use meta::{Hello, Left, Own};
pub use meta::{RequestMeta, ResponseMeta};

// Neither can begin the number of a method, in any of bincode's ways to write one.
const PLAIN: u8 = 255;
const WITH_META: u8 = 254;

// What comes after `WITH_META`. (Smaller numbers were these while they meant something else.)
const MESSAGE: u8 = 5;
const FAILURE: u8 = 3;
const TIMED: u8 = 4;

const NOT_WRAPPED: &str = "not a ddbx envelope: the other end of this connection is not wrapped \
                           by ddbx; wrap both ends or none";

/// A message with what the debugger adds to it. It is no larger than the message alone, for
/// nearly all types, because tarpc moves it about.
#[derive(Clone, Debug)]
pub enum Traced<M: 'static, T: 'static, D> {
    /// Nothing is added: there is no session.
    Plain(T),
    /// A response of a session of which there is nothing to say but its delay: nearly all.
    /// There are no such requests.
    Timed(D),
    /// A message of a session.
    With(Room<(M, T)>),
    /// A response of a session: the error of a handler. There are few.
    Failed(Box<(M, ServerError)>),
}

/// A request with what is added to it.
pub type TracedRequest<Req> = Traced<Shared<RequestMeta>, Req, Never>;
/// A response with what is added to it.
pub type TracedResponse<Resp> = Traced<ResponseMeta, Resp, Timed<Resp>>;

/// A response and the delay with which it comes. In this order: what the values of a response
/// leave unused at its beginning tells the variants of its envelope apart, for which no more room
/// is needed then.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Timed<T> {
    pub(crate) body: T,
    pub(crate) delay: Delay,
}

/// What is never said.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl Serialize for Never {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("a request cannot be an answer"))
    }
}

impl<M: 'static, T: RequestName + 'static> RequestName for Traced<M, T, Never> {
    fn name(&self) -> &str {
        match self {
            Self::Plain(body) => body.name(),
            Self::Timed(never) => match *never {},
            Self::With(message) => message.1.name(),
            Self::Failed(..) => "ddbx.failed",
        }
    }
}

/// In a format for people: `{"ddbx": null, "body": {"message": …}}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Readable<M, T, D, E> {
    ddbx: Option<M>,
    body: Body<T, D, E>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Body<T, D, E> {
    Message(T),
    Timed(D),
    Failure(E),
}

impl<M: Serialize + 'static, T: Serialize + 'static, D: Serialize> Serialize for Traced<M, T, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let (ddbx, body) = match self {
                Self::Plain(body) => (None, Body::Message(body)),
                Self::Timed(timed) => (None, Body::Timed(timed)),
                Self::With(message) => (Some(&message.0), Body::Message(&message.1)),
                Self::Failed(failed) => (Some(&failed.0), Body::Failure(&failed.1)),
            };
            return Readable { ddbx, body }.serialize(serializer);
        }
        match self {
            Self::Plain(body) => {
                let mut tuple = serializer.serialize_tuple(2)?;
                tuple.serialize_element(&PLAIN)?;
                tuple.serialize_element(body)?;
                tuple.end()
            }
            Self::Timed(timed) => {
                let mut tuple = serializer.serialize_tuple(3)?;
                tuple.serialize_element(&WITH_META)?;
                tuple.serialize_element(&TIMED)?;
                tuple.serialize_element(timed)?;
                tuple.end()
            }
            Self::With(message) => {
                let (meta, body) = &**message;
                let mut tuple = serializer.serialize_tuple(4)?;
                tuple.serialize_element(&WITH_META)?;
                tuple.serialize_element(&MESSAGE)?;
                tuple.serialize_element(meta)?;
                tuple.serialize_element(body)?;
                tuple.end()
            }
            Self::Failed(failed) => {
                let (meta, error) = &**failed;
                let mut tuple = serializer.serialize_tuple(4)?;
                tuple.serialize_element(&WITH_META)?;
                tuple.serialize_element(&FAILURE)?;
                tuple.serialize_element(meta)?;
                tuple.serialize_element(error)?;
                tuple.end()
            }
        }
    }
}

impl<'de, M, T, D> Deserialize<'de> for Traced<M, T, D>
where
    M: Deserialize<'de> + 'static,
    T: Deserialize<'de> + 'static,
    D: Deserialize<'de>,
{
    fn deserialize<From: Deserializer<'de>>(deserializer: From) -> Result<Self, From::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(4, Elements(PhantomData));
        }
        let read = Readable::<M, T, D, ServerError>::deserialize(deserializer);
        let read = read.map_err(|error| de::Error::custom(not_wrapped(&error.to_string())))?;
        match (read.ddbx, read.body) {
            (None, Body::Message(body)) => Ok(Self::Plain(body)),
            (Some(meta), Body::Message(body)) => Ok(Self::With(Room::new((meta, body)))),
            (_, Body::Timed(timed)) => Ok(Self::Timed(timed)),
            (Some(meta), Body::Failure(error)) => Ok(Self::Failed(Box::new((meta, error)))),
            (None, Body::Failure(error)) => Err(de::Error::custom(error)),
        }
    }
}

/// What is wrong with a message of an end that is not wrapped. tarpc just closes the
/// connection, and not every program shows what tarpc logs: so it is also said aloud.
fn not_wrapped(why: &str) -> String {
    static SAID: Once = Once::new();
    SAID.call_once(|| eprintln!("ddbx: {NOT_WRAPPED}"));
    format!("{NOT_WRAPPED} ({why})")
}

struct Elements<M, T, D>(PhantomData<(M, T, D)>);

impl<'de, M, T, D> Visitor<'de> for Elements<M, T, D>
where
    M: Deserialize<'de> + 'static,
    T: Deserialize<'de> + 'static,
    D: Deserialize<'de>,
{
    type Value = Traced<M, T, D>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ddbx envelope")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        fn next<'de, V: Deserialize<'de>, A: SeqAccess<'de>>(from: &mut A) -> Result<V, A::Error> {
            let missing = || de::Error::custom("the envelope ends too early");
            from.next_element()?.ok_or_else(missing)
        }
        let from = &mut elements;
        match next::<u8, A>(from)? {
            PLAIN => Ok(Traced::Plain(next(from)?)),
            WITH_META => match next::<u8, A>(from)? {
                TIMED => Ok(Traced::Timed(next(from)?)),
                MESSAGE => Ok(Traced::With(Room::new((next(from)?, next(from)?)))),
                FAILURE => Ok(Traced::Failed(Box::new((next(from)?, next(from)?)))),
                _ => Err(de::Error::custom("an envelope of another version of ddbx")),
            },
            marker => Err(de::Error::custom(not_wrapped(&format!("it begins with {marker}")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tarpc makes them of two methods.
    #[expect(dead_code, reason = "only their size is of interest")]
    enum Asked {
        Echo(u64),
        Put(String),
    }
    #[expect(dead_code, reason = "only their size is of interest")]
    enum Answered {
        Echo(u64),
        Put(u64),
    }

    #[test]
    fn an_envelope_takes_little_room() {
        assert_eq!(size_of::<TracedRequest<Asked>>(), size_of::<Asked>());
        assert!(size_of::<TracedResponse<Answered>>() <= size_of::<Answered>() + 8);
        // Also of values that leave nothing unused.
        assert!(size_of::<TracedRequest<[u64; 3]>>() <= size_of::<[u64; 3]>() + 16);
        assert!(size_of::<TracedResponse<[u64; 3]>>() <= size_of::<[u64; 3]>() + 16);
    }
}

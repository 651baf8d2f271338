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
use serde::{Deserialize, Serialize, Serializer};
use tarpc::{RequestName, ServerError};

use crate::pool::Room;

mod meta;
mod packed;

pub(crate) use meta::{Hello, Left};
pub use meta::{RequestMeta, ResponseMeta};

// None can begin the number of a method, in any of bincode's ways to write one.
const PLAIN: u8 = 255;
const WITH_META: u8 = 254;
/// A response that comes without any delay, of which there is no more to say: nearly all.
const ON_TIME: u8 = 253;

// What comes after `WITH_META`. (Smaller numbers were these while they meant something else.)
const MESSAGE: u8 = 7;
const FAILURE: u8 = 3;
const TIMED: u8 = 4;

const NOT_WRAPPED: &str = "not a ddbx envelope: the other end of this connection is not wrapped \
                           by ddbx; wrap both ends or none";

const NO_ANSWER: &str = "a request cannot be an answer";

/// A message with what the debugger adds to it. It is no larger than the message alone, for
/// nearly all types, because tarpc moves it about.
#[derive(Clone, Debug)]
pub enum Traced<M: Default + 'static, T: 'static, D> {
    /// Nothing is added: there is no session.
    Plain(T),
    /// A response of a session of which there is nothing to say but its delay: nearly all.
    /// There are no such requests.
    Timed(D),
    /// A message of a session.
    With(Room<M, T>),
    /// A response of a session: the error of a handler. There are few.
    Failed(Box<(M, ServerError)>),
}

/// A request with what is added to it.
pub type TracedRequest<Req> = Traced<RequestMeta, Req, Never>;
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

/// What can be said of a message without adding anything to it.
pub trait Brief<T>: Sized {
    /// The message, if there is nothing else to say.
    #[doc(hidden)]
    fn body_alone(&self) -> Option<&T>;
    /// The same back again, if there can be such a message.
    #[doc(hidden)]
    fn of_body(body: T) -> Option<Self>;
}

impl<T> Brief<T> for Timed<T> {
    #[inline]
    fn body_alone(&self) -> Option<&T> {
        (self.delay == Delay::ZERO).then_some(&self.body)
    }

    #[inline]
    fn of_body(body: T) -> Option<Self> {
        Some(Self { body, delay: Delay::ZERO })
    }
}

/// What is never said.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl<T> Brief<T> for Never {
    fn body_alone(&self) -> Option<&T> {
        match *self {}
    }

    fn of_body(_: T) -> Option<Self> {
        None
    }
}

impl Serialize for Never {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(NO_ANSWER))
    }
}

impl<M: Default + 'static, T: RequestName + 'static> RequestName for Traced<M, T, Never> {
    fn name(&self) -> &str {
        match self {
            Self::Plain(body) => body.name(),
            Self::Timed(never) => match *never {},
            Self::With(message) => message.parts().1.name(),
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

impl<M, T, D> Serialize for Traced<M, T, D>
where
    M: Serialize + Default + 'static,
    T: Serialize + 'static,
    D: Serialize + Brief<T>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let (ddbx, body) = match self {
                Self::Plain(body) => (None, Body::Message(body)),
                Self::Timed(timed) => (None, Body::Timed(timed)),
                Self::With(message) => {
                    let (meta, body) = message.parts();
                    (Some(meta), Body::Message(body))
                }
                Self::Failed(failed) => (Some(&failed.0), Body::Failure(&failed.1)),
            };
            return Readable { ddbx, body }.serialize(serializer);
        }
        match self {
            Self::Plain(body) => (PLAIN, body).serialize(serializer),
            Self::Timed(timed) => match timed.body_alone() {
                Some(body) => (ON_TIME, body).serialize(serializer),
                None => (WITH_META, TIMED, timed).serialize(serializer),
            },
            Self::With(message) => {
                let (meta, body) = message.parts();
                (WITH_META, MESSAGE, meta, body).serialize(serializer)
            }
            Self::Failed(failed) => {
                let (meta, error) = &**failed;
                (WITH_META, FAILURE, meta, error).serialize(serializer)
            }
        }
    }
}

impl<'de, M, T, D> Deserialize<'de> for Traced<M, T, D>
where
    M: Read<'de> + Default + 'static,
    T: Deserialize<'de> + 'static,
    D: Deserialize<'de> + Brief<T>,
{
    fn deserialize<From: Deserializer<'de>>(deserializer: From) -> Result<Self, From::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(4, Elements(PhantomData));
        }
        let read = Readable::<M, T, D, ServerError>::deserialize(deserializer);
        let read = read.map_err(|error| de::Error::custom(not_wrapped(&error.to_string())))?;
        match (read.ddbx, read.body) {
            (None, Body::Message(body)) => Ok(Self::Plain(body)),
            (Some(meta), Body::Message(body)) => Ok(Self::With(Room::new(meta, body))),
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

/// What is added to messages, read into where it stands.
pub trait Read<'de>: Deserialize<'de> {
    /// As the next element.
    #[doc(hidden)]
    fn read<A: SeqAccess<'de>>(&mut self, from: &mut A) -> Result<(), A::Error> {
        *self = next(from)?;
        Ok(())
    }
}

fn next<'de, V: Deserialize<'de>, A: SeqAccess<'de>>(from: &mut A) -> Result<V, A::Error> {
    from.next_element()?.ok_or_else(too_early)
}

fn too_early<E: de::Error>() -> E {
    E::custom("the envelope ends too early")
}

struct Elements<M, T, D>(PhantomData<(M, T, D)>);

impl<'de, M, T, D> Visitor<'de> for Elements<M, T, D>
where
    M: Read<'de> + Default + 'static,
    T: Deserialize<'de> + 'static,
    D: Deserialize<'de> + Brief<T>,
{
    type Value = Traced<M, T, D>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ddbx envelope")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let from = &mut elements;
        match next::<u8, A>(from)? {
            PLAIN => Ok(Traced::Plain(next(from)?)),
            ON_TIME => match D::of_body(next(from)?) {
                Some(timed) => Ok(Traced::Timed(timed)),
                None => Err(de::Error::custom(NO_ANSWER)),
            },
            WITH_META => match next::<u8, A>(from)? {
                TIMED => Ok(Traced::Timed(next(from)?)),
                MESSAGE => {
                    let mut room = Room::vacant();
                    M::read(room.meta_mut(), from)?;
                    Ok(Traced::With(room.with(next(from)?)))
                }
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

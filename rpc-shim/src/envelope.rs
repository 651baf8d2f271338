//! What a wrapped message looks like on the wire.
//!
//! The first byte is a marker that is never the number of a method: a wrapped end
//! that meets a plain one fails to decode, and never calls another method. Without
//! a session the marker is all that is added.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use tarpc::{RequestName, ServerError};

use crate::far_timer;
use crate::pool::Room;

mod meta;
mod packed;
mod short;

pub(crate) use meta::{Brief, FIRST, Hello};
pub use meta::{RequestMeta, ResponseMeta};
use packed::{PackedBrief, PackedMore, ReadBrief, ReadMore};
pub(crate) use short::Says;
pub use short::Short;

// None can begin the number of a method, in any of bincode's ways to write one.
const PLAIN: u8 = 255;
const WITH_META: u8 = 254;
/// Nearly all of a session: a request that says no more than every one does, and a response that
/// comes without any delay, of which there is no more to say.
const USUAL: u8 = 253;

// What comes after `WITH_META`. (Smaller numbers were these while they meant something else.)
const MESSAGE: u8 = 10;
const FAILURE: u8 = 3;
const SHORT: u8 = 11;

const NOT_WRAPPED: &str = "not a ddbx envelope: the other end of this connection is not wrapped \
                           by ddbx; wrap both ends or none";

const ANOTHER_VERSION: &str = "an envelope of another version of ddbx";

/// A request with what the debugger adds to it: a pointer, for tarpc moves it about.
#[derive(Clone, Debug)]
pub struct TracedRequest<Req: 'static>(Room<RequestMeta, Req>);

/// A response with what the debugger adds to it.
#[derive(Clone, Debug)]
pub enum TracedResponse<Resp: 'static> {
    /// Nothing is added: there is no session.
    Plain(Resp),
    /// There is no more to say than a number holds: nearly all of a session.
    Short(Short<Resp>),
    /// There is more to say.
    With(Room<ResponseMeta, Resp>),
    /// The error of a handler. There are few.
    Failed(Box<(ResponseMeta, ServerError)>),
}

impl<Req> TracedRequest<Req> {
    /// Without a session.
    #[inline]
    pub(crate) fn plain(body: Req) -> Self {
        let mut request = Self::new(body);
        request.parts_mut().0.set_nothing();
        request
    }

    /// One of which is still to be written what goes with it.
    #[inline]
    pub(crate) fn new(body: Req) -> Self {
        Self(Room::vacant().with(body))
    }

    /// Where that stands, and the request.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut Box<RequestMeta>, &Req) {
        self.0.parts_mut()
    }

    /// What goes with it, if anything does. It can change places with another.
    #[inline]
    pub(crate) fn meta_mut(&mut self) -> Option<&mut Box<RequestMeta>> {
        Some(self.0.meta_mut()).filter(|meta| meta.says_anything())
    }

    /// The request goes.
    #[inline]
    pub(crate) fn take_body(&mut self) -> Req {
        self.0.take_body()
    }
}

impl<Req: RequestName> RequestName for TracedRequest<Req> {
    fn name(&self) -> &str {
        self.0.parts().1.name()
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
    Short(D),
    Failure(E),
}

impl<Req: Serialize> Serialize for TracedRequest<Req> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (meta, body) = self.0.parts();
        if meta.hello().is_some() {
            far_timer::is_there();
        }
        if serializer.is_human_readable() {
            let body = Body::<_, Short<()>, &ServerError>::Message(body);
            let ddbx = Some(meta).filter(|meta| meta.says_anything());
            return Readable { ddbx, body }.serialize(serializer);
        }
        match meta.more() {
            None if meta.says_anything() => {
                (USUAL, PackedBrief::of(meta), body).serialize(serializer)
            }
            None => (PLAIN, body).serialize(serializer),
            Some(more) => (WITH_META, MESSAGE, PackedMore(meta, more), body).serialize(serializer),
        }
    }
}

impl<Resp: Serialize> Serialize for TracedResponse<Resp> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::With(room) = self
            && room.parts().0.name.is_some()
        {
            far_timer::is_there();
        }
        if serializer.is_human_readable() {
            let (ddbx, body) = match self {
                Self::Plain(body) => (None, Body::Message(body)),
                Self::Short(short) => (None, Body::Short(short)),
                Self::With(room) => {
                    let (meta, body) = room.parts();
                    (Some(meta), Body::Message(body))
                }
                Self::Failed(failed) => (Some(&failed.0), Body::Failure(&failed.1)),
            };
            return Readable { ddbx, body }.serialize(serializer);
        }
        match self {
            Self::Plain(body) => (PLAIN, body).serialize(serializer),
            Self::Short(Short { body, says: Says::NOTHING }) => (USUAL, body).serialize(serializer),
            Self::Short(Short { body, says }) => {
                (WITH_META, SHORT, says.bits(), body).serialize(serializer)
            }
            Self::With(room) => {
                let (meta, body) = room.parts();
                (WITH_META, MESSAGE, meta, body).serialize(serializer)
            }
            Self::Failed(failed) => {
                let (meta, error) = &**failed;
                (WITH_META, FAILURE, meta, error).serialize(serializer)
            }
        }
    }
}

impl<'de, Req: Deserialize<'de>> Deserialize<'de> for TracedRequest<Req> {
    fn deserialize<From: Deserializer<'de>>(deserializer: From) -> Result<Self, From::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(4, Elements::<Self>(PhantomData));
        }
        match read_by_people::<RequestMeta, Req, From>(deserializer)? {
            Readable { ddbx: None, body: Body::Message(body) } => Ok(Self::plain(body)),
            Readable { ddbx: Some(meta), body: Body::Message(body) } => {
                let mut request = Self::new(body);
                **request.parts_mut().0 = meta;
                Ok(request)
            }
            Readable { body: Body::Short { .. } | Body::Failure(_), .. } => {
                Err(de::Error::custom("a request cannot be an answer"))
            }
        }
    }
}

impl<'de, Resp: Deserialize<'de>> Deserialize<'de> for TracedResponse<Resp> {
    fn deserialize<From: Deserializer<'de>>(deserializer: From) -> Result<Self, From::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(4, Elements::<Self>(PhantomData));
        }
        let Readable { ddbx, body } = read_by_people::<ResponseMeta, Resp, From>(deserializer)?;
        match (ddbx, body) {
            (None, Body::Message(body)) => Ok(Self::Plain(body)),
            (Some(meta), Body::Message(body)) => Ok(Self::said(meta, body)),
            (_, Body::Short(short)) => Ok(Self::Short(short)),
            (Some(meta), Body::Failure(error)) => Ok(Self::Failed(Box::new((meta, error)))),
            (None, Body::Failure(error)) => Err(de::Error::custom(error)),
        }
    }
}

impl<Resp> TracedResponse<Resp> {
    /// A response of which there is this to say.
    #[inline]
    pub(crate) fn said(meta: ResponseMeta, body: Resp) -> Self {
        let mut room = Room::vacant();
        **room.meta_mut() = meta;
        Self::With(room.with(body))
    }

    /// A response of which there is nothing to say but this.
    #[inline]
    pub(crate) fn short(body: Resp, says: Says) -> Self {
        Self::Short(Short { body, says })
    }
}

fn read_by_people<'de, M, T, From>(
    deserializer: From,
) -> Result<Readable<M, T, Short<T>, ServerError>, From::Error>
where
    M: Deserialize<'de>,
    T: Deserialize<'de>,
    From: Deserializer<'de>,
{
    let read = Readable::deserialize(deserializer);
    read.map_err(|error| de::Error::custom(not_wrapped(&error.to_string())))
}

/// What is wrong with a message of an end that is not wrapped. tarpc just closes the
/// connection, and not every program shows what tarpc logs: so it is also said aloud.
fn not_wrapped(why: &str) -> String {
    static SAID: Once = Once::new();
    SAID.call_once(|| eprintln!("ddbx: {NOT_WRAPPED}"));
    format!("{NOT_WRAPPED} ({why})")
}

#[cold]
fn begins_with<E: de::Error>(marker: u8) -> E {
    E::custom(not_wrapped(&format!("it begins with {marker}")))
}

fn next<'de, V: Deserialize<'de>, A: SeqAccess<'de>>(from: &mut A) -> Result<V, A::Error> {
    from.next_element()?.ok_or_else(too_early)
}

fn too_early<E: de::Error>() -> E {
    E::custom("the envelope ends too early")
}

/// The elements of a message of this type.
struct Elements<T>(PhantomData<T>);

impl<'de, Req: Deserialize<'de>> Visitor<'de> for Elements<TracedRequest<Req>> {
    type Value = TracedRequest<Req>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ddbx request")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let from = &mut elements;
        let marker = next::<u8, A>(from)?;
        let mut room = Room::vacant();
        let meta: &mut RequestMeta = room.meta_mut();
        match marker {
            PLAIN => meta.set_nothing(),
            USUAL => from.next_element_seed(ReadBrief(meta))?.ok_or_else(too_early)?,
            WITH_META => match next::<u8, A>(from)? {
                MESSAGE => from.next_element_seed(ReadMore(meta))?.ok_or_else(too_early)?,
                _ => return Err(de::Error::custom(ANOTHER_VERSION)),
            },
            marker => return Err(begins_with(marker)),
        }
        Ok(TracedRequest(room.with(next(from)?)))
    }
}

impl<'de, Resp: Deserialize<'de>> Visitor<'de> for Elements<TracedResponse<Resp>> {
    type Value = TracedResponse<Resp>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ddbx response")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let from = &mut elements;
        match next::<u8, A>(from)? {
            PLAIN => Ok(TracedResponse::Plain(next(from)?)),
            USUAL => Ok(TracedResponse::short(next(from)?, Says::NOTHING)),
            WITH_META => match next::<u8, A>(from)? {
                SHORT => {
                    let says = Says::from_bits(next(from)?);
                    Ok(TracedResponse::short(next(from)?, says))
                }
                MESSAGE => {
                    let meta = next(from)?;
                    Ok(TracedResponse::said(meta, next(from)?))
                }
                FAILURE => Ok(TracedResponse::Failed(Box::new((next(from)?, next(from)?)))),
                _ => Err(de::Error::custom(ANOTHER_VERSION)),
            },
            marker => Err(begins_with(marker)),
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
        assert_eq!(size_of::<TracedRequest<Asked>>(), 8);
        assert!(size_of::<TracedResponse<Answered>>() <= size_of::<Answered>() + 8);
        // Also of values that leave nothing unused.
        assert!(size_of::<TracedResponse<[u64; 3]>>() <= size_of::<[u64; 3]>() + 16);
    }
}

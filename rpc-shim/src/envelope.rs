//! What a wrapped message looks like on the wire.
//!
//! The first byte is a marker that is never the number of a method: a wrapped end
//! that meets a plain one fails to decode, and never calls another method. Without
//! a session the marker is all that is added.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;
use std::thread::LocalKey;

use ddbx_protocol::{Delay, EventNumber, ProcessIndex, ProcessName, Stack, VirtualTime};
use ddbx_satellite::driver::Handle;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use tarpc::{RequestName, ServerError};

use crate::naming::Called;
use crate::pool::{Pooled, Room, Rooms};

// Neither can begin the number of a method, in any of bincode's ways to write one.
const PLAIN: u8 = 255;
const WITH_META: u8 = 254;

// What comes after `WITH_META`.
const MESSAGE: u8 = 0;
const FAILURE: u8 = 1;

const NOT_WRAPPED: &str = "not a ddbx envelope: the other end of this connection is not wrapped \
                           by ddbx; wrap both ends or none";

/// A message with what the debugger adds to it.
#[derive(Clone, Debug)]
pub enum Traced<M: Pooled, T> {
    /// Nothing is added: there is no session.
    Plain(T),
    /// A message of a session.
    With(Room<M>, T),
    /// A response of a session: the error of a handler. There are few.
    Failed(Box<(Room<M>, ServerError)>),
}

pub(crate) type TracedRequest<Req> = Traced<RequestMeta, Req>;
pub(crate) type TracedResponse<Resp> = Traced<ResponseMeta, Resp>;

/// What travels with a request.
#[derive(Clone, Serialize, Deserialize)]
pub struct RequestMeta {
    /// The processes that wait for the call, the outermost first.
    pub(crate) stack: Stack,
    /// Whose call, and which of its calls.
    pub(crate) call: Called,
    /// The delay of the strand.
    pub(crate) delay: SentDelay,
    /// Whether the user has let it go on anyway.
    pub(crate) is_free: bool,
    /// What is left of the deadline, in nanoseconds of virtual time.
    pub(crate) remaining_nanos: u64,
    /// The departure that this is, in the last process of the stack.
    pub(crate) sent: EventNumber,
    /// Who that is, until something has come back over the connection. (A request of
    /// its own would be seen by hooks around the wrapper, and count in tarpc's limits.)
    pub(crate) hello: Option<Hello>,
}

/// The delay of a request. One that leaves its caller may still wait in tarpc's own
/// queue for others to be answered: what that costs is known when it is really sent.
#[derive(Clone)]
pub(crate) enum SentDelay {
    /// On its way.
    Leaves {
        satellite: Handle,
        /// What its clock showed.
        at: VirtualTime,
        delay: Delay,
    },
    /// It has arrived, over a wire.
    Arrived(Delay),
}

impl SentDelay {
    pub(crate) fn now(&self) -> Delay {
        match self {
            Self::Leaves { satellite, at, delay } => satellite.woken_by_anybody(*at, *delay),
            Self::Arrived(delay) => *delay,
        }
    }
}

impl fmt::Debug for RequestMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}", self.call.id(), self.delay.now())
    }
}

impl Serialize for SentDelay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.now().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SentDelay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Delay::deserialize(deserializer).map(Self::Arrived)
    }
}

/// What travels with a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseMeta {
    /// The delay of the strand.
    pub(crate) delay: Delay,
    /// Whether the user has let it go on anyway.
    pub(crate) is_free: bool,
    /// Who answers.
    pub(crate) from: ProcessIndex,
    /// The departure that this is there.
    pub(crate) sent: EventNumber,
    /// Its name, if the caller has introduced itself.
    pub(crate) name: Option<ProcessName>,
}

/// How a connection introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The caller's name in the session.
    pub(crate) name: ProcessName,
    /// The connection, counted by the caller.
    pub(crate) connection: u32,
    /// Its beginning there.
    pub(crate) connected: EventNumber,
}

thread_local! {
    static OF_REQUESTS: Rooms<RequestMeta> = RefCell::default();
    static OF_RESPONSES: Rooms<ResponseMeta> = RefCell::default();
}

impl Pooled for RequestMeta {
    fn rooms() -> &'static LocalKey<Rooms<Self>> {
        &OF_REQUESTS
    }
}

impl Pooled for ResponseMeta {
    fn rooms() -> &'static LocalKey<Rooms<Self>> {
        &OF_RESPONSES
    }
}

impl<M: Pooled, T: RequestName> RequestName for Traced<M, T> {
    fn name(&self) -> &str {
        match self {
            Self::Plain(body) | Self::With(_, body) => body.name(),
            Self::Failed(..) => "ddbx.failed",
        }
    }
}

/// In a format for people: `{"ddbx": null, "body": {"message": …}}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Readable<M, T, E> {
    ddbx: Option<M>,
    body: Body<T, E>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Body<T, E> {
    Message(T),
    Failure(E),
}

impl<M: Pooled + Serialize, T: Serialize> Serialize for Traced<M, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let (ddbx, body) = match self {
                Self::Plain(body) => (None, Body::Message(body)),
                Self::With(meta, body) => (Some(meta), Body::Message(body)),
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
            Self::With(meta, body) => {
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

impl<'de, M: Pooled + Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Traced<M, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_tuple(4, Elements(PhantomData));
        }
        let read = Readable::<Room<M>, T, ServerError>::deserialize(deserializer);
        let read = read.map_err(|error| de::Error::custom(not_wrapped(&error.to_string())))?;
        match (read.ddbx, read.body) {
            (None, Body::Message(body)) => Ok(Self::Plain(body)),
            (Some(meta), Body::Message(body)) => Ok(Self::With(meta, body)),
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

struct Elements<M, T>(PhantomData<(M, T)>);

impl<'de, M: Pooled + Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Elements<M, T> {
    type Value = Traced<M, T>;

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
                MESSAGE => Ok(Traced::With(next(from)?, next(from)?)),
                FAILURE => Ok(Traced::Failed(Box::new((next(from)?, next(from)?)))),
                _ => Err(de::Error::custom("an envelope of another version of ddbx")),
            },
            marker => Err(de::Error::custom(not_wrapped(&format!("it begins with {marker}")))),
        }
    }
}

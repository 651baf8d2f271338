//! What a wrapped message looks like on the wire.
//!
//! The first byte is a marker that is never the number of a method: a wrapped end
//! that meets a plain one fails to decode, and never calls another method. Without
//! a session the marker is all that is added.

use std::fmt;
use std::marker::PhantomData;

use ddbx_protocol::{Delay, ProcessIndex};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use tarpc::{RequestName, ServerError};

/// How deep calls may nest.
const STACK_MAX: usize = 256;

const PLAIN: u8 = 255;
const WITH_META: u8 = 254;

const NOT_WRAPPED: &str = "not a ddbx envelope: the other end of this connection is not wrapped \
                           by ddbx; wrap both ends or none";

/// A message with what the debugger adds to it, which is kept behind a pointer:
/// tarpc moves messages many times.
#[derive(Clone, Debug)]
pub struct Traced<M, T> {
    pub(crate) meta: Option<Box<M>>,
    pub(crate) body: T,
}

pub(crate) type TracedRequest<Req> = Traced<RequestMeta, Req>;
pub(crate) type TracedResponse<Resp> = Traced<ResponseMeta, Result<Resp, ServerError>>;

/// What travels with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMeta {
    /// The processes that wait for the call, the outermost first.
    #[serde(deserialize_with = "bounded")]
    pub(crate) stack: Vec<ProcessIndex>,
    /// The delay of the strand.
    pub(crate) delay: Delay,
    /// What is left of the deadline, in nanoseconds of virtual time.
    pub(crate) remaining_nanos: u64,
}

/// What travels with a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseMeta {
    /// The delay of the strand.
    pub(crate) delay: Delay,
}

impl<M, T> Traced<M, T> {
    pub(crate) fn plain(body: T) -> Self {
        Self { meta: None, body }
    }

    pub(crate) fn with(meta: M, body: T) -> Self {
        Self { meta: Some(Box::new(meta)), body }
    }
}

impl<M, T: RequestName> RequestName for Traced<M, T> {
    fn name(&self) -> &str {
        self.body.name()
    }
}

impl<M: Serialize, T: Serialize> Serialize for Traced<M, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            #[derive(Serialize)]
            struct Readable<'a, M, T> {
                ddbx: &'a Option<Box<M>>,
                body: &'a T,
            }
            return Readable { ddbx: &self.meta, body: &self.body }.serialize(serializer);
        }
        match &self.meta {
            None => {
                let mut tuple = serializer.serialize_tuple(2)?;
                tuple.serialize_element(&PLAIN)?;
                tuple.serialize_element(&self.body)?;
                tuple.end()
            }
            Some(meta) => {
                let mut tuple = serializer.serialize_tuple(3)?;
                tuple.serialize_element(&WITH_META)?;
                tuple.serialize_element(meta)?;
                tuple.serialize_element(&self.body)?;
                tuple.end()
            }
        }
    }
}

impl<'de, M: Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Traced<M, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Readable<M, T> {
                ddbx: Option<Box<M>>,
                body: T,
            }
            let read = Readable::deserialize(deserializer);
            let Readable { ddbx, body } =
                read.map_err(|error| de::Error::custom(format!("{NOT_WRAPPED} ({error})")))?;
            return Ok(Self { meta: ddbx, body });
        }
        deserializer.deserialize_tuple(3, Elements(PhantomData))
    }
}

struct Elements<M, T>(PhantomData<(M, T)>);

impl<'de, M: Deserialize<'de>, T: Deserialize<'de>> Visitor<'de> for Elements<M, T> {
    type Value = Traced<M, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ddbx envelope")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let missing = || de::Error::custom("the envelope ends too early");
        let meta = match elements.next_element::<u8>()? {
            Some(PLAIN) => None,
            Some(WITH_META) => Some(elements.next_element()?.ok_or_else(missing)?),
            _ => return Err(de::Error::custom(NOT_WRAPPED)),
        };
        let body = elements.next_element()?.ok_or_else(missing)?;
        Ok(Traced { meta, body })
    }
}

/// Refuses a stack that no program has before room is made for it.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ProcessIndex>, D::Error> {
    struct Stack;
    impl<'de> Visitor<'de> for Stack {
        type Value = Vec<ProcessIndex>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {STACK_MAX} processes")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut processes: A) -> Result<Self::Value, A::Error> {
            let mut stack = Vec::new();
            while let Some(process) = processes.next_element()? {
                if stack.len() == STACK_MAX {
                    return Err(de::Error::invalid_length(stack.len() + 1, &self));
                }
                stack.push(process);
            }
            Ok(stack)
        }
    }
    deserializer.deserialize_seq(Stack)
}

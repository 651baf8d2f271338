//! Metadata on the wire. It goes with every message: so, except in formats for people, it is
//! a string of bytes, which costs less to write and to read than its fields one by one.

use std::fmt;

use ddbx_protocol::session::STACK_MAX;
use ddbx_protocol::{
    CallPath, ControlId, Delay, EventNumber, MethodName, ProcessIndex, ProcessName, Stack,
    VirtualTime,
};
use serde::de::{self, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;

use super::meta::{Hello, Left, RequestMeta, ResponseMeta};
use super::{Read, too_early};
use crate::deadlines::Remaining;
use crate::naming::{Began, Name};

/// Room for what nearly all messages have.
type Bytes = SmallVec<[u8; 128]>;

const IS_FREE: u8 = 1;
/// A request that says who calls, and a response that says who answers.
const INTRODUCES: u8 = 2;
/// A control that has a name.
const IS_NAMED: u8 = 4;
/// A request before which somebody was held when it had left its caller.
const HAS_WAITED: u8 = 8;
/// A control without a name that has called on: where and with what it began is said.
const CALLS_ON: u8 = 16;

/// What is wrong with bytes that are no metadata.
const DAMAGED: &str = "what ddbx adds to a message is damaged, or of another version of ddbx";

/// What every request has.
const REQUEST: usize = 41;

/// What nearly every request is: one process waits for it, and it is one from outside.
const SHORT_REQUEST: usize = REQUEST + 8 + 4;

/// What every response has.
const RESPONSE: usize = 25;

impl RequestMeta {
    /// Puts what every request has.
    #[inline]
    fn begin<const LENGTH: usize>(&self) -> Fixed<LENGTH> {
        let (who, hash, nth) = match &self.control {
            Name::Known(_) => (IS_NAMED, 0, 0),
            Name::Root { hash, nth, began: None } => (0, *hash, *nth),
            Name::Root { hash, nth, began: Some(_) } => (CALLS_ON, *hash, *nth),
        };
        let (delay, mut fixed) = (self.delay(), Fixed::default());
        fixed.put([flag(self.left.is_free, IS_FREE)
            | flag(self.hello.is_some(), INTRODUCES)
            | who
            | flag(self.has_waited(delay), HAS_WAITED)]);
        fixed.put(delay.as_nanos().to_le_bytes());
        fixed.put(self.remaining.0.to_le_bytes());
        fixed.put(self.left.sent.0.to_le_bytes());
        fixed.put(hash.to_le_bytes());
        fixed.put(nth.to_le_bytes());
        // Neither can be longer than this.
        fixed.put((self.stack.0.len() as u16).to_le_bytes());
        fixed.put((self.path.numbers().len() as u16).to_le_bytes());
        fixed
    }

    /// As nearly every request is written, in one place.
    #[inline]
    fn pack_short(&self) -> Option<[u8; SHORT_REQUEST]> {
        match (&*self.stack.0, self.path.numbers(), &self.control, &self.hello) {
            ([process], [nth], Name::Root { began: None, .. }, None) => {
                let mut fixed = self.begin();
                fixed.put(process.0.to_le_bytes());
                fixed.put(nth.to_le_bytes());
                Some(fixed.bytes)
            }
            _ => None,
        }
    }

    fn pack(&self) -> Bytes {
        let mut bytes = Bytes::from_slice(&self.begin::<REQUEST>().bytes);
        let (stack, path) = (&self.stack.0, self.path.numbers());
        stack.iter().for_each(|process| bytes.extend_from_slice(&process.0.to_le_bytes()));
        path.iter().for_each(|nth| bytes.extend_from_slice(&nth.to_le_bytes()));
        match &self.control {
            Name::Known(name) => put_text(&mut bytes, name.as_str()),
            Name::Root { began: Some(Began { home, method }), .. } => {
                put_text(&mut bytes, home.as_str());
                put_text(&mut bytes, method.name.as_str());
            }
            Name::Root { began: None, .. } => {}
        }
        if let Some(hello) = &self.hello {
            put_text(&mut bytes, hello.name.as_str());
            bytes.extend_from_slice(&hello.connection.to_le_bytes());
            bytes.extend_from_slice(&hello.connected.0.to_le_bytes());
        }
        bytes
    }

    /// What has the length that nearly every request has is read without looking at every step
    /// whether it is over.
    fn unpack(&mut self, bytes: &[u8]) -> Option<()> {
        match <&[u8; SHORT_REQUEST]>::try_from(bytes) {
            Ok(short) => self.unpack_from(Unpacked(short)),
            Err(_) => self.unpack_long(bytes),
        }
    }

    #[inline(never)]
    fn unpack_long(&mut self, bytes: &[u8]) -> Option<()> {
        self.unpack_from(Unpacked(bytes))
    }

    #[inline(always)]
    fn unpack_from(&mut self, mut from: Unpacked<'_>) -> Option<()> {
        let [flags] = from.take()?;
        let delay = Delay::from_nanos(from.number()?);
        self.remaining = Remaining(from.number()?);
        let sent = EventNumber(from.number()?);
        self.has_waited = flags & HAS_WAITED != 0;
        let is_free = flags & IS_FREE != 0;
        self.left = Left { at: VirtualTime::default(), delay, is_free, sent };
        let (hash, nth) = (from.number()?, u32::from_le_bytes(from.take()?));
        let [stack, path] = [from.take()?, from.take()?].map(u16::from_le_bytes).map(usize::from);
        if stack > STACK_MAX + 1 || path > CallPath::DEPTH_MAX {
            return None;
        }
        match stack {
            1 => self.stack.set_home(ProcessIndex(from.number()?)),
            _ => {
                self.stack = Stack::default();
                for _ in 0..stack {
                    self.stack.0.push(ProcessIndex(from.number()?));
                }
            }
        }
        match path {
            1 => self.path.set_root(u32::from_le_bytes(from.take()?)),
            _ => {
                let mut numbers = SmallVec::<[u32; 8]>::new();
                for _ in 0..path {
                    numbers.push(u32::from_le_bytes(from.take()?));
                }
                self.path = CallPath::new(&numbers)?;
            }
        }
        match flags & (IS_NAMED | CALLS_ON) {
            0 => self.control.set_root(hash, nth, None),
            CALLS_ON => {
                let (home, method) = (from.text()?, from.text()?);
                match Began::told(home, method) {
                    Some(began) => self.control.set_root(hash, nth, Some(began)),
                    None => {
                        let home = ProcessName::new(home).ok()?;
                        let method = MethodName::new(method).ok()?;
                        self.control = ControlId::of_call(&home, &method, hash, nth).into();
                    }
                }
            }
            _ => self.control = ControlId::new(from.text()?).ok()?.into(),
        }
        self.hello = match flags & INTRODUCES != 0 {
            true => Some(Box::new(Hello {
                name: ProcessName::new(from.text()?).ok()?,
                connection: u32::from_le_bytes(from.take()?),
                connected: EventNumber(from.number()?),
                names_had: 0,
            })),
            false => None,
        };
        self.floor = None;
        from.0.is_empty().then_some(())
    }
}

impl ResponseMeta {
    fn pack(&self) -> Bytes {
        let mut fixed = Fixed::<RESPONSE>::default();
        fixed.put([flag(self.is_free, IS_FREE) | flag(self.name.is_some(), INTRODUCES)]);
        fixed.put(self.delay.as_nanos().to_le_bytes());
        fixed.put(self.from.0.to_le_bytes());
        fixed.put(self.sent.0.to_le_bytes());
        let mut bytes = Bytes::from_slice(&fixed.bytes);
        self.name.iter().for_each(|name| put_text(&mut bytes, name.as_str()));
        bytes
    }

    fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Unpacked(bytes);
        let [flags] = from.take()?;
        let meta = Self {
            delay: Delay::from_nanos(from.number()?),
            is_free: flags & IS_FREE != 0,
            from: ProcessIndex(from.number()?),
            sent: EventNumber(from.number()?),
            name: match flags & INTRODUCES != 0 {
                true => Some(ProcessName::new(from.text()?).ok()?),
                false => None,
            },
        };
        from.0.is_empty().then_some(meta)
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

fn put_text(bytes: &mut Bytes, text: &str) {
    // Names are shorter than this.
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// The part that every message has, which is put together in one place.
struct Fixed<const LENGTH: usize> {
    bytes: [u8; LENGTH],
    filled: usize,
}

impl<const LENGTH: usize> Default for Fixed<LENGTH> {
    fn default() -> Self {
        Self { bytes: [0; LENGTH], filled: 0 }
    }
}

impl<const LENGTH: usize> Fixed<LENGTH> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.filled..self.filled + N].copy_from_slice(&bytes);
        self.filled += N;
    }
}

/// What has not been read yet.
struct Unpacked<'a>(&'a [u8]);

impl<'a> Unpacked<'a> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = u16::from_le_bytes(self.take()?);
        let (text, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

/// Reads what was packed.
struct Packed<F>(F);

impl<T, F: FnOnce(&[u8]) -> Option<T>> Visitor<'_> for Packed<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what ddbx adds to a message")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        self.0(bytes).ok_or_else(|| E::custom(DAMAGED))
    }
}

/// Reads it into where it stands.
struct Into<'a>(&'a mut RequestMeta);

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_bytes(Packed(|bytes: &[u8]| self.0.unpack(bytes)))
    }
}

impl<'de> Read<'de> for RequestMeta {
    fn read<A: SeqAccess<'de>>(&mut self, from: &mut A) -> Result<(), A::Error> {
        from.next_element_seed(Into(self))?.ok_or_else(too_early)
    }
}

impl Read<'_> for ResponseMeta {}

/// A request's metadata for people.
#[derive(Serialize, Deserialize)]
struct Request<S, N, P, H> {
    stack: S,
    control: N,
    path: P,
    delay: Delay,
    is_free: bool,
    remaining_nanos: Remaining,
    has_waited: bool,
    sent: EventNumber,
    hello: H,
}

impl Serialize for RequestMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return match self.pack_short() {
                Some(bytes) => serializer.serialize_bytes(&bytes),
                None => serializer.serialize_bytes(&self.pack()),
            };
        }
        let delay = self.delay();
        let request = Request {
            stack: &self.stack,
            control: &self.control,
            path: &self.path,
            delay,
            is_free: self.left.is_free,
            remaining_nanos: self.remaining,
            has_waited: self.has_waited(delay),
            sent: self.left.sent,
            hello: &self.hello,
        };
        request.serialize(serializer)
    }
}

/// In a format for people; in others it is [read](Read) into where it stands.
impl<'de> Deserialize<'de> for RequestMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Request::<Stack, Name, CallPath, Option<Box<Hello>>>::deserialize(deserializer)?;
        let Request { stack, control, path, remaining_nanos: remaining, has_waited, hello, .. } =
            read;
        let Request { delay, is_free, sent, .. } = read;
        let left = Left { at: VirtualTime::default(), delay, is_free, sent };
        let floor = None;
        Ok(Self { stack, control, path, left, remaining, has_waited, hello, floor })
    }
}

/// A response's metadata for people.
#[derive(Serialize, Deserialize)]
struct Response<N> {
    delay: Delay,
    is_free: bool,
    from: ProcessIndex,
    sent: EventNumber,
    name: N,
}

impl Serialize for ResponseMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.pack());
        }
        let Self { delay, is_free, from, sent, name } = self;
        let (delay, is_free, from, sent) = (*delay, *is_free, *from, *sent);
        Response { delay, is_free, from, sent, name }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ResponseMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_bytes(Packed(Self::unpack));
        }
        let read = Response::<Option<ProcessName>>::deserialize(deserializer)?;
        let Response { delay, is_free, from, sent, name } = read;
        Ok(Self { delay, is_free, from, sent, name })
    }
}

#[cfg(test)]
mod tests {
    use bincode::Options as _;

    use super::*;

    fn request(control: Name, hello: Option<Box<Hello>>) -> RequestMeta {
        let (delay, sent) = (Delay::from_nanos(5), EventNumber(9));
        RequestMeta {
            stack: Stack::home(ProcessIndex(7)).call(ProcessIndex(u64::MAX)),
            control,
            path: CallPath::root(3).child(1),
            left: Left { at: VirtualTime::default(), delay, is_free: true, sent },
            remaining: Remaining(1 << 40),
            has_waited: false,
            hello,
            floor: None,
        }
    }

    fn requests() -> [RequestMeta; 3] {
        let name = ProcessName::new("shop").unwrap();
        let connected = EventNumber(2);
        let hello = Some(Box::new(Hello { name, connection: 4, connected, names_had: 0 }));
        let known = ControlId::new("shop/main").unwrap().into();
        let root = Name::Root { hash: 11, nth: 2, began: None };
        let buy = MethodName::new("Shop.buy").unwrap();
        let calls_on = Name::told(&ProcessName::new("web").unwrap(), &buy, 11, 2);
        [request(root, None), request(calls_on, None), request(known, hello)]
    }

    fn written(meta: &RequestMeta) -> Vec<u8> {
        bincode::DefaultOptions::new().serialize(meta).unwrap()
    }

    /// Into a place where another was.
    fn read(bytes: &[u8]) -> RequestMeta {
        let [.., mut meta] = requests();
        let mut from = bincode::Deserializer::from_slice(bytes, bincode::DefaultOptions::new());
        Into(&mut meta).deserialize(&mut from).unwrap();
        meta
    }

    /// All of it, as text.
    fn told(meta: &RequestMeta) -> String {
        serde_json::to_string(meta).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        for meta in requests() {
            let bytes = written(&meta);
            assert_eq!(told(&read(&bytes)), told(&meta));
            let read: RequestMeta = serde_json::from_str(&told(&meta)).unwrap();
            assert_eq!(told(&read), told(&meta));
        }
        let meta = ResponseMeta {
            delay: Delay::from_nanos(8),
            is_free: false,
            from: ProcessIndex(1),
            sent: EventNumber(6),
            name: ProcessName::new("stock").ok(),
        };
        assert!(!meta.is_short());
        assert_eq!(ResponseMeta::unpack(&meta.pack()), Some(meta));
    }

    #[test]
    fn that_it_has_waited_is_told() {
        let [mut meta, ..] = requests();
        assert!(!read(&written(&meta)).has_waited(meta.left.delay));
        meta.has_waited = true;
        assert!(read(&written(&meta)).has_waited(meta.left.delay));
    }

    #[test]
    fn what_is_short_is_written_alike() {
        let [mut meta, calls_on, _] = requests();
        assert!(meta.pack_short().is_none(), "two processes wait for it");
        (meta.stack, meta.path) = (Stack::home(ProcessIndex(7)), CallPath::root(3));
        assert_eq!(meta.pack_short().unwrap()[..], meta.pack()[..]);
        meta.control = calls_on.control;
        assert!(meta.pack_short().is_none(), "where it began is to be told");
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for meta in requests() {
            let bytes = meta.pack();
            let is_read = |bytes: &[u8]| RequestMeta::default().unpack(bytes).is_some();
            assert!((0..bytes.len()).all(|length| !is_read(&bytes[..length])));
            assert!(!is_read(&[&bytes[..], &[0]].concat()) && is_read(&bytes));
        }
    }
}

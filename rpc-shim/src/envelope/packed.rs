//! Metadata on the wire. It goes with every message: so, except in formats for people, it is
//! a string of bytes, which costs less to write and to read than its fields one by one.

use std::fmt;

use ddbx_protocol::session::STACK_MAX;
use ddbx_protocol::{
    CallPath, ControlId, Delay, EventNumber, MethodName, ProcessIndex, ProcessName, Stack,
};
use serde::de::{self, DeserializeSeed, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;

use super::meta::{Brief, Hello, More, RequestMeta, ResponseMeta};
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
/// A request that comes with a delay, or whose departure was noted.
const IS_LONG: u8 = 32;

/// What is wrong with bytes that are no metadata.
const DAMAGED: &str = "what ddbx adds to a message is damaged, or of another version of ddbx";

/// What every request has at the most, in bytes; most are shorter.
const BRIEF: usize = 45;

/// What every response has.
const RESPONSE: usize = 25;

impl Brief {
    /// With these flags besides. Nearly all have no delay, and their departures were not noted:
    /// then neither is written.
    #[inline]
    fn pack(&self, flags: u8) -> Fixed<BRIEF> {
        let mut fixed = Fixed::default();
        let is_long = self.delay != Delay::ZERO || self.sent != EventNumber::default();
        let own = flag(self.is_free, IS_FREE) | flag(self.has_waited, HAS_WAITED);
        fixed.put([own | flag(is_long, IS_LONG) | flags]);
        fixed.put(self.remaining.0.to_le_bytes());
        fixed.put(self.caller.0.to_le_bytes());
        fixed.put(self.hash.to_le_bytes());
        fixed.put(self.nth.to_le_bytes());
        if is_long {
            fixed.put(self.delay.as_nanos().to_le_bytes());
            fixed.put(self.sent.0.to_le_bytes());
        }
        fixed
    }

    /// And these flags.
    #[inline]
    fn unpack(from: &mut Unpacked<'_>) -> Option<(Self, u8)> {
        let [flags] = from.take()?;
        let mut brief = Self {
            remaining: Remaining(from.number()?),
            caller: ProcessIndex(from.number()?),
            hash: from.number()?,
            nth: u32::from_le_bytes(from.take()?),
            is_free: flags & IS_FREE != 0,
            has_waited: flags & HAS_WAITED != 0,
            ..Self::default()
        };
        if flags & IS_LONG != 0 {
            brief.delay = Delay::from_nanos(from.number()?);
            brief.sent = EventNumber(from.number()?);
        }
        Some((brief, flags & !(IS_FREE | HAS_WAITED | IS_LONG)))
    }
}

impl RequestMeta {
    /// What every request says, as it is when it is really sent.
    #[inline]
    fn brief_now(&self) -> Brief {
        let delay = self.delay();
        Brief { delay, has_waited: self.has_waited(delay), ..self.brief }
    }

    fn pack(&self, more: &More) -> Bytes {
        let (who, hash, nth) = match &more.control {
            Name::Known(_) => (IS_NAMED, 0, 0),
            Name::Root { hash, nth, began: None } => (0, *hash, *nth),
            Name::Root { hash, nth, began: Some(_) } => (CALLS_ON, *hash, *nth),
        };
        let brief = Brief { hash, nth, ..self.brief_now() };
        let flags = who | flag(more.hello.is_some(), INTRODUCES);
        let mut bytes = Bytes::from_slice(brief.pack(flags).bytes());
        let (stack, path) = (&more.stack.0, more.path.numbers());
        // Neither can be longer than this.
        bytes.extend_from_slice(&(stack.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(path.len() as u16).to_le_bytes());
        stack.iter().for_each(|process| bytes.extend_from_slice(&process.0.to_le_bytes()));
        path.iter().for_each(|nth| bytes.extend_from_slice(&nth.to_le_bytes()));
        match &more.control {
            Name::Known(name) => put_text(&mut bytes, name.as_str()),
            Name::Root { began: Some(Began { home, method }), .. } => {
                put_text(&mut bytes, home.as_str());
                put_text(&mut bytes, method.name.as_str());
            }
            Name::Root { began: None, .. } => {}
        }
        if let Some(hello) = &more.hello {
            put_text(&mut bytes, hello.name.as_str());
            bytes.extend_from_slice(&hello.connection.to_le_bytes());
            bytes.extend_from_slice(&hello.connected.0.to_le_bytes());
        }
        bytes
    }

    fn unpack(&mut self, bytes: &[u8]) -> Option<()> {
        let mut from = Unpacked(bytes);
        let (brief, flags) = Brief::unpack(&mut from)?;
        (self.brief, self.floor) = (brief, None);
        let [stack, path] = [from.take()?, from.take()?].map(u16::from_le_bytes).map(usize::from);
        if stack > STACK_MAX + 1 || path > CallPath::DEPTH_MAX {
            return None;
        }
        let more = self.more_mut();
        more.stack.0.clear();
        for _ in 0..stack {
            more.stack.0.push(ProcessIndex(from.number()?));
        }
        let mut numbers = SmallVec::<[u32; 8]>::new();
        for _ in 0..path {
            numbers.push(u32::from_le_bytes(from.take()?));
        }
        more.path = CallPath::new(&numbers)?;
        let Brief { hash, nth, .. } = brief;
        match flags & (IS_NAMED | CALLS_ON) {
            0 => more.control.set_root(hash, nth, None),
            CALLS_ON => {
                let (home, method) = (from.text()?, from.text()?);
                match Began::told(home, method) {
                    Some(began) => more.control.set_root(hash, nth, Some(began)),
                    None => {
                        let home = ProcessName::new(home).ok()?;
                        let method = MethodName::new(method).ok()?;
                        more.control = ControlId::of_call(&home, &method, hash, nth).into();
                    }
                }
            }
            _ => more.control = ControlId::new(from.text()?).ok()?.into(),
        }
        more.hello = match flags & INTRODUCES != 0 {
            true => Some(Box::new(Hello {
                name: ProcessName::new(from.text()?).ok()?,
                connection: u32::from_le_bytes(from.take()?),
                connected: EventNumber(from.number()?),
                names_had: 0,
            })),
            false => None,
        };
        from.0.is_empty().then_some(())
    }
}

/// What a request says of which there is no more to say.
pub(super) struct PackedBrief(Fixed<BRIEF>);

impl PackedBrief {
    #[inline]
    pub(super) fn of(meta: &RequestMeta) -> Self {
        Self(meta.brief_now().pack(0))
    }
}

impl Serialize for PackedBrief {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.bytes())
    }
}

/// What another one says.
pub(super) struct PackedMore<'a>(pub(super) &'a RequestMeta, pub(super) &'a More);

impl Serialize for PackedMore<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0.pack(self.1))
    }
}

/// Reads the former into where it stands.
pub(super) struct ReadBrief<'a>(pub(super) &'a mut RequestMeta);

impl<'de> DeserializeSeed<'de> for ReadBrief<'_> {
    type Value = ();

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_bytes(Packed(|bytes: &[u8]| {
            let mut from = Unpacked(bytes);
            let (brief, 0) = Brief::unpack(&mut from)? else { return None };
            self.0.set_brief(brief);
            self.0.floor = None;
            from.0.is_empty().then_some(())
        }))
    }
}

/// Reads the latter.
pub(super) struct ReadMore<'a>(pub(super) &'a mut RequestMeta);

impl<'de> DeserializeSeed<'de> for ReadMore<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_bytes(Packed(|bytes: &[u8]| self.0.unpack(bytes)))
    }
}

impl ResponseMeta {
    fn pack(&self) -> Bytes {
        let mut fixed = Fixed::<RESPONSE>::default();
        fixed.put([flag(self.is_free, IS_FREE) | flag(self.name.is_some(), INTRODUCES)]);
        fixed.put(self.delay.as_nanos().to_le_bytes());
        fixed.put(self.from.0.to_le_bytes());
        fixed.put(self.sent.0.to_le_bytes());
        let mut bytes = Bytes::from_slice(fixed.bytes());
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
struct Fixed<const MAX: usize> {
    room: [u8; MAX],
    filled: usize,
}

impl<const MAX: usize> Default for Fixed<MAX> {
    #[inline]
    fn default() -> Self {
        Self { room: [0; MAX], filled: 0 }
    }
}

impl<const MAX: usize> Fixed<MAX> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.room[self.filled..self.filled + N].copy_from_slice(&bytes);
        self.filled += N;
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.room[..self.filled]
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

/// In a format for people; in others it is packed.
impl Serialize for RequestMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Brief { delay, remaining, sent, is_free, has_waited, .. } = self.brief_now();
        let request = Request {
            stack: self.stack(),
            control: self.control(),
            path: self.path(),
            delay,
            is_free,
            remaining_nanos: remaining,
            has_waited,
            sent,
            hello: self.hello(),
        };
        request.serialize(serializer)
    }
}

/// The same.
impl<'de> Deserialize<'de> for RequestMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Request::<Stack, Name, CallPath, Option<Box<Hello>>>::deserialize(deserializer)?;
        let Request { stack, control, path, remaining_nanos: remaining, has_waited, hello, .. } =
            read;
        let Request { delay, is_free, sent, .. } = read;
        let caller = stack.top().unwrap_or_default();
        let brief = Brief { delay, remaining, sent, caller, is_free, has_waited, hash: 0, nth: 0 };
        let mut meta = Self::default();
        meta.brief = brief;
        *meta.more_mut() = More { stack, control, path, hello };
        Ok(meta)
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
        let stack = Stack::home(ProcessIndex(7)).call(ProcessIndex(u64::MAX));
        let brief = Brief {
            delay: Delay::from_nanos(5),
            remaining: Remaining(1 << 40),
            sent: EventNumber(9),
            caller: ProcessIndex(u64::MAX),
            hash: 11,
            nth: 2,
            is_free: true,
            has_waited: false,
        };
        let mut meta = RequestMeta::default();
        meta.brief = brief;
        *meta.more_mut() = More { stack, control, path: CallPath::root(3).child(1), hello };
        meta
    }

    fn requests() -> [RequestMeta; 5] {
        let name = ProcessName::new("shop").unwrap();
        let connected = EventNumber(2);
        let hello = Some(Box::new(Hello { name, connection: 4, connected, names_had: 0 }));
        let known = ControlId::new("shop/main").unwrap().into();
        let root = Name::Root { hash: 11, nth: 2, began: None };
        let buy = MethodName::new("Shop.buy").unwrap();
        let calls_on = Name::told(&ProcessName::new("web").unwrap(), &buy, 11, 2);
        let brief = |brief: Brief| {
            let mut meta = RequestMeta::default();
            meta.set_brief(brief);
            meta
        };
        let long = request(root.clone(), None).brief;
        let short = Brief { delay: Delay::ZERO, sent: EventNumber(0), ..long };
        let rest = [request(root, None), request(calls_on, None), request(known, hello)];
        let [root, calls_on, known] = rest;
        [brief(short), brief(long), root, calls_on, known]
    }

    fn written(meta: &RequestMeta) -> Vec<u8> {
        let options = bincode::DefaultOptions::new();
        match meta.more() {
            None => options.serialize(&PackedBrief::of(meta)).unwrap(),
            Some(more) => options.serialize(&PackedMore(meta, more)).unwrap(),
        }
    }

    /// Into a place where another was.
    fn read(bytes: &[u8], is_brief: bool) -> RequestMeta {
        let [.., mut meta] = requests();
        let mut from = bincode::Deserializer::from_slice(bytes, bincode::DefaultOptions::new());
        match is_brief {
            true => ReadBrief(&mut meta).deserialize(&mut from).unwrap(),
            false => ReadMore(&mut meta).deserialize(&mut from).unwrap(),
        }
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
            assert_eq!(told(&read(&bytes, meta.more().is_none())), told(&meta));
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
        assert_eq!(ResponseMeta::unpack(&meta.pack()), Some(meta));
    }

    #[test]
    fn that_it_has_waited_is_told() {
        for mut meta in requests() {
            let is_brief = meta.more().is_none();
            let has_waited =
                |meta: &RequestMeta| read(&written(meta), is_brief).has_waited(meta.brief.delay);
            assert!(!has_waited(&meta));
            meta.brief.has_waited = true;
            assert!(has_waited(&meta));
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let [short, long, rest @ ..] = requests();
        for meta in rest {
            let bytes = meta.pack(meta.more().unwrap());
            let is_read = |bytes: &[u8]| RequestMeta::default().unpack(bytes).is_some();
            assert!((0..bytes.len()).all(|length| !is_read(&bytes[..length])));
            assert!(!is_read(&[&bytes[..], &[0]].concat()) && is_read(&bytes));
        }
        for (meta, length) in [(short, 29), (long, BRIEF)] {
            let mut bytes = written(&meta);
            let is_read = |bytes: &[u8]| {
                let options = bincode::DefaultOptions::new();
                let mut from = bincode::Deserializer::from_slice(bytes, options);
                ReadBrief(&mut RequestMeta::default()).deserialize(&mut from).is_ok()
            };
            assert_eq!(bytes.len(), 1 + length);
            assert!(is_read(&bytes) && !is_read(&bytes[..bytes.len() - 1]));
            bytes[1] ^= IS_LONG;
            assert!(!is_read(&bytes), "it is longer or shorter than it says");
            bytes[1] ^= IS_LONG | IS_NAMED;
            assert!(!is_read(&bytes), "what its flags announce is not there");
        }
    }
}

//! Messages as bytes: a length (32 bits, big-endian), then a body in bincode
//! (satellites) or JSON (controllers).
//!
//! Everything that comes from outside is bounded before memory is taken for it:
//! a frame by its limit, and what a body claims to contain by the bytes that it
//! has. Two things slip through. Few bytes can become much memory, and elements
//! without size even come out of none: five bytes of bincode can claim fifty
//! million `()`. So **every list that a satellite reads or writes has a limit**
//! ([`crate::bounded`]). And decoders recurse, and a body nested deep enough would
//! exhaust the stack: so **no type on the wire may be recursive**. What satellites
//! say must not need names to be read (tagged or untagged enums, flattened or
//! skipped fields), for bincode writes none.

use std::io;

use bincode::Options;
use bytes::{Buf, BufMut, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio_util::codec::{Decoder, Encoder};

use super::Role;

/// From whoever dials: central has many of them.
const FROM_DIALLER_BYTES_MAX: usize = 1 << 20;
/// From central, which everybody has only one of, and which tells of all.
const FROM_LISTENER_BYTES_MAX: usize = 16 << 20;

/// The bytes of the length before a body.
const HEAD_BYTES: usize = size_of::<u32>();

/// Turns the messages that go one way over a connection into bytes and back.
///
/// Not tokio-util's `LengthDelimitedCodec`, though the bytes are the same: that
/// one takes an end right after a length for an end between two frames.
pub(super) struct Codec {
    role: Role,
    bytes_max: usize,
}

impl Codec {
    /// For messages from the end that has dialled as `role`.
    pub(super) fn from_dialler(role: Role) -> Self {
        Self { role, bytes_max: FROM_DIALLER_BYTES_MAX }
    }

    /// For messages to the end that has dialled as `role`.
    pub(super) fn from_listener(role: Role) -> Self {
        Self { role, bytes_max: FROM_LISTENER_BYTES_MAX }
    }

    /// Reads the body of a frame, all of it.
    pub(super) fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, FrameError> {
        let read = match self.role {
            Role::Satellite => self.bincode().deserialize(body).map_err(|e| e.to_string()),
            Role::Controller => serde_json::from_slice(body).map_err(|e| e.to_string()),
        };
        read.map_err(FrameError::Malformed)
    }

    fn write<T: Serialize>(&self, message: &T, body: impl io::Write) -> Result<(), FrameError> {
        match self.role {
            Role::Satellite => self.bincode().serialize_into(body, message).map_err(|e| match *e {
                bincode::ErrorKind::SizeLimit => self.too_long(),
                other => FrameError::Unwritable(other.to_string()),
            }),
            Role::Controller => serde_json::to_writer(body, message)
                .map_err(|e| FrameError::Unwritable(e.to_string())),
        }
    }

    fn bincode(&self) -> impl Options {
        bincode::DefaultOptions::new().with_limit(self.bytes_max as u64).reject_trailing_bytes()
    }

    /// Whether a body may be so long.
    pub(super) fn check_length(&self, bytes: usize) -> Result<(), FrameError> {
        if bytes > self.bytes_max { Err(self.too_long()) } else { Ok(()) }
    }

    fn too_long(&self) -> FrameError {
        FrameError::TooLong { bytes_max: self.bytes_max }
    }
}

impl<T: Serialize> Encoder<&T> for Codec {
    type Error = FrameError;

    fn encode(&mut self, message: &T, buffer: &mut BytesMut) -> Result<(), FrameError> {
        let start = buffer.len();
        buffer.put_bytes(0, HEAD_BYTES);
        let written = self.write(message, (&mut *buffer).writer());
        let bytes = buffer.len() - start - HEAD_BYTES;
        if let Err(error) = written.and(self.check_length(bytes)) {
            // Nothing of it is sent, so the connection is still good.
            buffer.truncate(start);
            return Err(error);
        }
        buffer[start..start + HEAD_BYTES].copy_from_slice(&(bytes as u32).to_be_bytes());
        Ok(())
    }
}

impl Decoder for Codec {
    type Item = BytesMut;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<BytesMut>, FrameError> {
        let Some(head) = buffer.first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let bytes = u32::from_be_bytes(*head) as usize;
        self.check_length(bytes)?;
        // Memory is taken as bytes come, not as they are announced.
        if buffer.len() < HEAD_BYTES + bytes {
            return Ok(None);
        }
        buffer.advance(HEAD_BYTES);
        Ok(Some(buffer.split_to(bytes)))
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<BytesMut>, FrameError> {
        match self.decode(buffer)? {
            None if !buffer.is_empty() => Err(FrameError::Truncated),
            frame => Ok(frame),
        }
    }
}

/// What is wrong with a message, or with the connection.
#[derive(Debug, Error)]
pub enum FrameError {
    /// More bytes than the limit, to send or announced by the other end.
    #[error("a message has more than the {bytes_max} bytes that are allowed here")]
    TooLong {
        /// How many are allowed.
        bytes_max: usize,
    },
    /// The other end stopped in the middle of a message.
    #[error("the connection ended in the middle of a message: the other end may have crashed")]
    Truncated,
    /// The bytes do not make a message.
    #[error("a message cannot be read: {0}; are both ends built with the same ddbx?")]
    Malformed(String),
    /// The message cannot be made into bytes.
    #[error("a message cannot be written: {0}")]
    Unwritable(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::breakpoint::{Breakpoint, Place, RpcEvent, Scope};
    use crate::ids::BreakpointId;
    use crate::session::{
        Open, Permit, ProcessIndex, Stack, StopId, StopReason, ToCentral, ToSatellite,
    };
    use crate::spec::Pattern;
    use crate::time::{Delay, RealTime, VirtualTime};

    const ROLES: [Role; 2] = [Role::Satellite, Role::Controller];

    fn encode<T: Serialize>(codec: &mut Codec, message: &T) -> BytesMut {
        let mut buffer = BytesMut::new();
        codec.encode(message, &mut buffer).unwrap();
        buffer
    }

    fn there_and_back<T>(message: T)
    where
        T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        for role in ROLES {
            let mut codec = Codec::from_dialler(role);
            let mut buffer = encode(&mut codec, &message);
            let body = codec.decode_eof(&mut buffer).unwrap().unwrap();
            assert_eq!(codec.read::<T>(&body).unwrap(), message, "{role:?}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn the_words_of_a_session_go_there_and_back() {
        let by = StopId { process: ProcessIndex(3), number: 4 };
        there_and_back(ToCentral::Stopped {
            number: 1,
            reason: StopReason::Breakpoint(BreakpointId(2)),
            stack: Stack::home(ProcessIndex(1)).call(ProcessIndex(u64::MAX)),
            clock: VirtualTime::from_nanos(-5),
            sent: RealTime::default(),
        });
        there_and_back(ToSatellite::Permit(Permit {
            open: Some(Open { clock: VirtualTime::from_nanos(7), by }),
            ..Permit::default()
        }));
        there_and_back(ToSatellite::Granted {
            number: 9,
            delay: Delay::from(Duration::from_secs(2)),
        });
        there_and_back(ToSatellite::Plant(Breakpoint {
            condition: None,
            id: BreakpointId(1),
            place: Place::Rpc { event: Some(RpcEvent::Arrive), method: Pattern::from("World.*") },
            scope: Scope::Call,
            ignore: 2,
            once: true,
        }));
    }

    #[test]
    fn limits_depend_on_who_sends() {
        let limit = |codec: Codec| codec.bytes_max;
        assert_eq!(limit(Codec::from_dialler(Role::Satellite)), 1 << 20);
        assert_eq!(limit(Codec::from_listener(Role::Satellite)), 16 << 20);
        assert_eq!(limit(Codec::from_dialler(Role::Controller)), 1 << 20);
        assert_eq!(limit(Codec::from_listener(Role::Controller)), 16 << 20);
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused_by_its_length_alone() {
        for role in ROLES {
            let mut codec = Codec { role, bytes_max: 8 };
            let mut buffer = BytesMut::from(&9u32.to_be_bytes()[..]);
            let error = codec.decode(&mut buffer).unwrap_err();
            assert!(matches!(error, FrameError::TooLong { bytes_max: 8 }), "{error}");
        }
    }

    #[test]
    fn a_message_beyond_the_limit_is_not_sent() {
        for role in ROLES {
            let mut codec = Codec { role, bytes_max: 8 };
            let mut buffer = encode(&mut codec, &"ok");
            let before = buffer.clone();
            let error = codec.encode(&"too long", &mut buffer).unwrap_err();
            assert!(matches!(error, FrameError::TooLong { bytes_max: 8 }), "{error}");
            assert_eq!(buffer, before);
        }
    }

    #[test]
    fn bytes_after_the_message_are_refused() {
        for role in ROLES {
            let codec = Codec::from_dialler(role);
            let mut body = encode(&mut Codec::from_dialler(role), &7u8).split_off(HEAD_BYTES);
            assert_eq!(codec.read::<u8>(&body).unwrap(), 7);
            body.put_u8(b'7');
            body.put_u8(b'}');
            let error = codec.read::<u8>(&body).unwrap_err();
            assert!(matches!(error, FrameError::Malformed(_)), "{error}");
        }
    }

    /// A claim of 2^62 numbers in a body of nine bytes: the decoder must run out
    /// of bytes, not of memory.
    #[test]
    fn a_claimed_length_takes_no_memory() {
        let mut body = vec![253];
        body.extend((1u64 << 62).to_le_bytes());
        let codec = Codec::from_dialler(Role::Satellite);
        assert!(matches!(codec.read::<Vec<u64>>(&body), Err(FrameError::Malformed(_))));
        assert!(matches!(codec.read::<String>(&body), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn an_end_is_clean_only_between_frames() {
        for role in ROLES {
            let mut codec = Codec::from_dialler(role);
            let whole = encode(&mut codec, &"hello");
            for length in 1..whole.len() {
                let mut part = BytesMut::from(&whole[..length]);
                assert!(codec.decode(&mut part).unwrap().is_none());
                let error = codec.decode_eof(&mut part).unwrap_err();
                assert!(matches!(error, FrameError::Truncated), "{length}: {error}");
            }
            assert!(codec.decode_eof(&mut BytesMut::new()).unwrap().is_none());
        }
    }
}

//! Inputs that are nearly right.

use fastrand::Rng;

/// No input is longer, but for the rare one.
const BYTES_MAX: usize = 4 << 10;

/// The rare one.
const LONG_BYTES_MAX: usize = 64 << 10;

/// What lengths and numbers are when somebody means harm, and where encodings change.
const NUMBERS: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    250,
    251,
    0xff,
    0x7fff,
    0xffff,
    0x0100_0000,
    0x7fff_ffff,
    0xffff_ffff,
    50_000_000,
    1 << 62,
    i64::MAX as u64,
    u64::MAX,
];

/// What the formats are made of.
const WORDS: [&[u8]; 24] = [
    b"[",
    b"]",
    b"{",
    b"}",
    b"(",
    b")",
    b"\"",
    b"'",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b".",
    b",",
    b":",
    b"#",
    b"=",
    b"\n",
    b"\x1b[2J",
    b"\xff",
    b"\xef\xbb\xbf",
];

/// A few changes to one of the seeds. The same for the same state of `rng`.
pub fn mutated(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = |rng: &mut Rng| rng.choice(seeds).cloned().unwrap_or_default();
    let mut bytes = match rng.u32(..64) {
        0 => (0..rng.usize(..64)).map(|_| rng.u8(..)).collect(),
        _ => seed(rng),
    };
    let bytes_max = if rng.u32(..512) == 0 { LONG_BYTES_MAX } else { BYTES_MAX };
    for _ in 0..1 + rng.usize(..6) / (1 + rng.usize(..3)) {
        change(rng, &mut bytes, &mut |rng| seed(rng), bytes_max);
    }
    bytes.truncate(bytes_max.max(seeds.iter().map(Vec::len).max().unwrap_or(0)));
    bytes
}

fn change(
    rng: &mut Rng,
    bytes: &mut Vec<u8>,
    another: &mut dyn FnMut(&mut Rng) -> Vec<u8>,
    bytes_max: usize,
) {
    let at = rng.usize(..=bytes.len());
    match rng.u32(..13) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.u32(..8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.u8(..);
            }
        }
        3 => {
            let inserted: Vec<u8> = (0..1 + rng.usize(..8)).map(|_| rng.u8(..)).collect();
            bytes.splice(at..at, inserted);
        }
        4 => {
            let end = at + rng.usize(..=(bytes.len() - at).min(16));
            bytes.drain(at..end);
        }
        // Again what stands here, elsewhere.
        5 => {
            let part = part(rng, bytes, 64);
            bytes.splice(at..at, part);
        }
        // The end of another input.
        6 => {
            let other = another(rng);
            bytes.truncate(at);
            bytes.extend(&other[rng.usize(..=other.len())..]);
        }
        // A piece of another one in the place of this.
        7 => {
            let other = another(rng);
            let part = part(rng, &other, 64);
            let end = bytes.len().min(at + part.len());
            bytes.splice(at..end, part);
        }
        8 => blow_up(rng, bytes, at),
        9 => {
            let word = WORDS[rng.usize(..WORDS.len())];
            let end = if rng.bool() { at } else { bytes.len().min(at + word.len()) };
            bytes.splice(at..end, word.iter().copied());
        }
        10 => bytes.truncate(at),
        // Something short over and over: lists, and nesting.
        11 => {
            let some = match rng.bool() {
                true => part(rng, bytes, 8),
                false => WORDS[rng.usize(..WORDS.len())].to_vec(),
            };
            let times = 1 << rng.usize(..16);
            let room = bytes_max.saturating_sub(bytes.len());
            let times = if some.is_empty() { 0 } else { (room / some.len()).min(times) };
            bytes.splice(at..at, some.repeat(times));
        }
        _ => digits(rng, bytes, at),
    }
}

/// Some of it, at most `max` bytes.
fn part(rng: &mut Rng, bytes: &[u8], max: usize) -> Vec<u8> {
    let from = rng.usize(..=bytes.len());
    let length = rng.usize(..=(bytes.len() - from).min(max));
    bytes[from..from + length].to_vec()
}

/// A number in the place of what may be one: of one to eight bytes, either way round, or as
/// bincode writes it.
fn blow_up(rng: &mut Rng, bytes: &mut Vec<u8>, at: usize) {
    let number = NUMBERS[rng.usize(..NUMBERS.len())].wrapping_add(rng.u64(..3)).wrapping_sub(1);
    let little = number.to_le_bytes();
    let written = match rng.u32(..5) {
        0 => little[..1].to_vec(),
        1 => little[..[2, 4, 8][rng.usize(..3)]].to_vec(),
        2 => number.to_be_bytes()[[0, 4, 6][rng.usize(..3)]..].to_vec(),
        3 => [&[253], &little[..]].concat(),
        _ => [&[252], &little[..4]].concat(),
    };
    let replaced = if rng.bool() { written.len() } else { 1 };
    let end = bytes.len().min(at + replaced);
    bytes.splice(at..end, written);
}

/// Another number in the place of the next one that is written in digits.
fn digits(rng: &mut Rng, bytes: &mut Vec<u8>, at: usize) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found)
    else {
        return;
    };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[rng.usize(..NUMBERS.len())].to_string();
    bytes.splice(start..start + length, number.into_bytes());
}

//! What is checked of a condition before any parser sees it.

use super::{InvalidCondition, What};

/// How long a condition may be.
pub(super) const BYTES_MAX: usize = 1024;

/// How deep brackets and `? :` may be nested. Nothing else makes the parser recurse:
/// it takes chains of operators and of fields in its stride.
pub(super) const LEVELS_MAX: usize = 8;

/// Length, characters and nesting.
pub(super) fn check(text: &str) -> Result<(), InvalidCondition> {
    if text.len() > BYTES_MAX {
        let fits = &printable(&text[..text.floor_char_boundary(BYTES_MAX)]);
        return Err(InvalidCondition::new(fits, fits.len(), What::TooLong));
    }
    if text.contains(char::is_control) {
        let shown = printable(text);
        let at = shown.find(char::REPLACEMENT_CHARACTER).unwrap_or_default();
        return Err(InvalidCondition::new(&shown, at, What::Character));
    }
    nesting(text).map_err(|(at, what)| InvalidCondition::new(text, at, what))
}

/// An error message goes to a terminal, and control characters must not.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn nesting(text: &str) -> Result<(), (usize, What)> {
    let bytes = text.as_bytes();
    // For each open bracket, how many `?` wait in it: `a ? b : c ? d : e` nests.
    let mut open = vec![0];
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let here = at;
        at += 1;
        match byte {
            b'(' | b'[' | b'{' => open.push(0),
            b')' | b']' | b'}' if open.len() > 1 => drop(open.pop()),
            b'?' => *open.last_mut().unwrap_or(&mut 0) += 1,
            b',' => *open.last_mut().unwrap_or(&mut 0) = 0,
            b'/' if bytes.get(at) == Some(&b'/') => return Ok(()), // a comment
            b'\'' | b'"' => at = end_of_text(bytes, here, false)?,
            _ if is_word(byte) => {
                at += bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
                let raw = matches!(&bytes[here..at], [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R']);
                if raw && matches!(bytes.get(at), Some(b'\'' | b'"')) {
                    at = end_of_text(bytes, at, true)?;
                }
            }
            _ => {}
        }
        if open.len() - 1 + open.iter().sum::<usize>() > LEVELS_MAX {
            return Err((here, What::TooDeep));
        }
    }
    Ok(())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a text ends whose first quote is at `start`. In a raw one, `\` is a
/// character like any other.
fn end_of_text(bytes: &[u8], start: usize, raw: bool) -> Result<usize, (usize, What)> {
    let triple = [bytes[start]; 3];
    let quotes = if bytes[start..].starts_with(&triple) { &triple[..] } else { &triple[..1] };
    let mut at = start + quotes.len();
    while at < bytes.len() {
        if bytes[at..].starts_with(quotes) {
            return Ok(at + quotes.len());
        }
        at += if bytes[at] == b'\\' && !raw { 2 } else { 1 };
    }
    Err((start, What::OpenText))
}

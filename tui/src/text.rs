//! Text that came from outside, made fit for a terminal.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How much of a message from outside is worth showing: its beginning, and its
/// end, where parsers say the place.
const HEAD_CHARS: usize = 300;
const TAIL_CHARS: usize = 100;

/// The text on one line of bounded length, with nothing in it that moves the
/// cursor, ends the line or changes the direction of writing.
pub fn one_line(text: &str) -> String {
    let tail_start = text.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at);
    let head_end = text.char_indices().nth(HEAD_CHARS).map_or(text.len(), |(at, _)| at);
    if head_end >= tail_start {
        return escaped(text);
    }
    format!("{} … {}", escaped(&text[..head_end]), escaped(&text[tail_start..]))
}

/// The text with everything in it escaped that is not plain.
pub fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if is_plain(character) {
            clean.push(character);
        } else {
            clean.extend(character.escape_unicode());
        }
    }
    clean
}

/// JSON that means the same and has everything escaped that is not plain, but for the ends
/// of its lines. JSON itself leaves some of what terminals obey as it is.
pub fn escaped_json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for character in json.chars() {
        if is_plain(character) || character == '\n' {
            clean.push(character);
        } else {
            // All of these have one number in UTF-16.
            _ = write!(clean, "\\u{:04x}", u32::from(character));
        }
    }
    clean
}

fn is_plain(character: char) -> bool {
    let separates = matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let turns = matches!(character,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(character.is_control() || separates || turns)
}

/// How many columns a text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A name in at most `most` columns: its beginning and its end, which is where
/// similar names differ.
pub fn cut(name: &str, most: usize) -> String {
    let clean = one_line(name);
    if width(&clean) <= most {
        return clean;
    }
    let room = most.saturating_sub(1);
    let head = fitting(clean.chars(), room - room / 2);
    let tail: String = fitting(clean.chars().rev(), room / 2);
    let tail: String = tail.chars().rev().collect();
    format!("{head}…{tail}")
}

/// A name in exactly `columns` columns.
pub fn padded(name: &str, columns: usize) -> String {
    let cut = cut(name, columns);
    let missing = columns.saturating_sub(width(&cut));
    cut + &" ".repeat(missing)
}

/// A part of a text that is typed, around the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What is shown of it.
    pub text: String,
    /// In which column of that the next character goes.
    pub cursor: usize,
    /// How many columns of the text are left of it.
    pub hidden: usize,
}

/// As much of a text as fits into `room` columns, the cursor between its halves included.
pub fn around(before: &str, after: &str, room: usize) -> Part {
    let (before, after) = (escaped(before), escaped(after));
    let whole = width(&before);
    if whole + width(&after).max(1) <= room {
        return Part { text: before + &after, cursor: whole, hidden: 0 };
    }
    // Behind the cursor there is room for it, and for one wide character or a sign.
    let behind = if after.is_empty() { 1 } else { 2 };
    let mut head = before.as_str();
    let mut sign = "";
    while width(sign) + width(head) + behind > room && !head.is_empty() {
        let mut characters = head.chars();
        characters.next();
        (head, sign) = (characters.as_str(), "…");
    }
    let cursor = width(sign) + width(head);
    let mut tail = fitting(after.chars(), room.saturating_sub(cursor));
    if tail.len() < after.len() {
        tail = fitting(after.chars(), room.saturating_sub(cursor + 1)) + "…";
    }
    let hidden = whole.saturating_sub(cursor);
    Part { text: format!("{sign}{head}{tail}"), cursor, hidden }
}

fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// A text on as many lines as it needs, none of them wider than `most`.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let text = escaped(text);
    if width(&text) <= most {
        return vec![text];
    }
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let mut word = word;
        let room = |line: &String| most.saturating_sub(width(line));
        if lines
            .last()
            .is_some_and(|line| width(word.trim_end()) > room(line) && !line.trim().is_empty())
        {
            lines.push(String::new());
        }
        while width(word.trim_end()) > most {
            let part = fitting(word.chars(), most.max(2));
            word = &word[part.len()..];
            lines.push(part);
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A length of time.
pub fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

/// A time that may be before the beginning.
pub fn signed_seconds(millis: i64) -> String {
    let sign = if millis < 0 { "-" } else { "" };
    format!("{sign}{}", seconds(millis.unsigned_abs()))
}

/// A time to the microsecond.
pub fn micros_of(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let micros = nanos.unsigned_abs() / 1_000;
    format!("{sign}{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}

/// How many in a second.
pub fn count(per_second: f64) -> String {
    match per_second {
        10.0.. => format!("{per_second:.0}"),
        0.05.. => format!("{per_second:.1}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_moves_the_cursor_or_floods_the_screen() {
        assert_eq!(one_line("a\nb\u{1b}[2J"), "a\\u{a}b\\u{1b}[2J");
        assert_eq!(one_line("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
        let cut_down = one_line(&format!("{} at line 3", "x".repeat(1_000_000)));
        assert!(cut_down.chars().count() < 410 && cut_down.ends_with("x at line 3"));
    }

    #[test]
    fn json_is_fit_for_a_terminal_and_means_the_same() {
        let text = "a\n\u{1b}[2J\u{7f}\u{9b}2J\u{202e}\u{feff}ü在\u{1f980}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let clean = escaped_json(&json);
        let shown = |character: char| is_plain(character) || character == '\n';
        assert!(clean.chars().all(shown) && clean.contains("\\u009b2J"), "{clean}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&clean).unwrap(), [text]);
    }

    #[test]
    fn names_fit_their_columns() {
        assert_eq!(cut("abcdef", 5), "ab…ef");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(padded("在庫", 6), "在庫  ");
        assert!(width(&cut("注文処理注文処理", 6)) <= 6);
    }

    #[test]
    fn what_is_typed_is_shown_around_the_cursor() {
        let part = |before, after, room| {
            let Part { text, cursor, hidden } = around(before, after, room);
            assert!(width(&text) <= room && cursor < room, "{text} {cursor}");
            (text, cursor, hidden)
        };
        assert_eq!(part("abc", "", 4), ("abc".to_owned(), 3, 0));
        assert_eq!(part("abcdef", "", 4), ("…ef".to_owned(), 3, 3));
        assert_eq!(part("abc", "defgh", 6), ("abcde…".to_owned(), 3, 0));
        assert_eq!(part("abcdefgh", "ijk", 5), ("…ghi…".to_owned(), 3, 5));
        assert_eq!(part("注文処理", "", 6), ("…処理".to_owned(), 5, 3));
        assert_eq!(part("a\u{202e}", "", 20), ("a\\u{202e}".to_owned(), 9, 0));
    }
}

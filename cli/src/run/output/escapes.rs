//! What a debuggee prints, without anything that does more than show text.
//!
//! Colours may stay; every other control sequence goes, and what else is not
//! plain text is shown as an escape. A sequence ends with its line at the latest.

use crate::text;

const ESC: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

/// One line made safe for a terminal.
pub(crate) fn clean(line: &str, colours: bool) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut coloured = false;
    let mut rest = line;
    while let Some(start) = rest.find(|c| introduces(c).is_some() || c == '\t') {
        let (plain, sequence) = rest.split_at(start);
        clean.push_str(&text::escaped(plain));
        let length = sequence_length(sequence);
        let (sequence, after) = sequence.split_at(length);
        if sequence == "\t" {
            clean.push('\t');
        } else if colours && is_colour(sequence) {
            clean.push_str(sequence);
            coloured = true;
        }
        rest = after;
    }
    clean.push_str(&text::escaped(rest));
    // Nor may the next line inherit them.
    if coloured {
        clean.push_str(RESET);
    }
    clean
}

/// What kind of sequence a character begins.
enum Kind {
    /// ESC: the next character says which.
    Escape,
    /// Parameters, then one final character.
    Control,
    /// Text up to a terminator.
    Text,
}

/// The one-character forms are what terminals make of C1 controls.
fn introduces(character: char) -> Option<Kind> {
    match character {
        ESC => Some(Kind::Escape),
        '\u{9b}' => Some(Kind::Control),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Some(Kind::Text),
        _ => None,
    }
}

/// How many bytes the sequence has that the text begins with.
fn sequence_length(text: &str) -> usize {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return 0 };
    let kind = match introduces(first) {
        None => return first.len_utf8(),
        Some(Kind::Escape) => match characters.as_str().chars().next() {
            Some('[') => {
                characters.next();
                Kind::Control
            }
            Some(']' | 'P' | 'X' | '^' | '_') => {
                characters.next();
                Kind::Text
            }
            _ => Kind::Escape,
        },
        Some(kind) => kind,
    };
    let body = characters.as_str();
    let start = text.len() - body.len();
    start
        + match kind {
            Kind::Escape => {
                ended_by(body, |c| (' '..='/').contains(&c), |c| ('0'..='~').contains(&c))
            }
            Kind::Control => {
                ended_by(body, |c| (' '..='?').contains(&c), |c| ('@'..='~').contains(&c))
            }
            Kind::Text => text_length(body),
        }
}

/// The length of what `inner` accepts and one `last`. What fits neither is not
/// part of the sequence, which is broken then.
fn ended_by(body: &str, inner: impl Fn(char) -> bool, last: impl Fn(char) -> bool) -> usize {
    match body.char_indices().find(|(_, character)| !inner(*character)) {
        None => body.len(),
        Some((at, character)) if last(character) => at + character.len_utf8(),
        Some((at, _)) => at,
    }
}

/// Up to BEL or ST. Another ESC breaks the text off.
fn text_length(body: &str) -> usize {
    match body.char_indices().find(|(_, c)| matches!(c, '\u{7}' | '\u{9c}' | &ESC)) {
        None => body.len(),
        Some((at, ESC)) if body[at..].starts_with("\u{1b}\\") => at + 2,
        Some((at, ESC)) => at,
        Some((at, terminator)) => at + terminator.len_utf8(),
    }
}

fn is_colour(sequence: &str) -> bool {
    sequence.strip_prefix("\u{1b}[").and_then(|rest| rest.strip_suffix('m')).is_some_and(
        |parameters| parameters.chars().all(|c| c.is_ascii_digit() || ";:".contains(c)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_and_colours_get_through() {
        let cases = [
            ("plain\ttext ü", "plain\ttext ü"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[38:2::1:2:3mred", "red"),
            ("a\u{1b}[2Jb\u{1b}[10;10Hc\u{1b}[?25ld\u{1b}[Ae", "abcde"),
            ("a\u{1b}[>4;2mb", "ab"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("a\u{1b}Pq#1\u{1b}\\b\u{1b}_x\u{1b}\\c", "abc"),
            ("a\u{1b}(Bb\u{1b}7c\u{1b}cd\u{1b}#8e", "abcde"),
            ("a\u{9b}2Jb\u{9d}0;title\u{9c}c", "abc"),
            ("a\u{1b}]0;never ended", "a"),
            ("a\u{1b}]0;x\u{1b}[2Jb", "ab"),
            ("a\u{1b}[31", "a"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[3\u{fc}b", "aüb"),
            ("a\u{1b}\u{1b}[2Jb", "ab"),
            ("a\rb\u{8}\u{0}\u{202e}", "a\\u{d}b\\u{8}\\u{0}\\u{202e}"),
            ("a\u{85}b", "a\\u{85}b"),
        ];
        for (line, expected) in cases {
            assert_eq!(clean(line, false), expected, "{line:?}");
        }
    }

    #[test]
    fn colours_stay_where_they_are_wanted_and_end_with_the_line() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[2K", true), "\u{1b}[31mred\u{1b}[0m");
        assert_eq!(clean("\u{1b}[2mdim\u{1b}[m", true), "\u{1b}[2mdim\u{1b}[m\u{1b}[0m");
        assert_eq!(clean("plain", true), "plain");
    }
}

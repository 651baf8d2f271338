//! Text that came from outside, made fit for a terminal.

/// How much of a message from outside is worth showing: its beginning, and its
/// end, where parsers say the place.
const HEAD_CHARS: usize = 300;
const TAIL_CHARS: usize = 100;

/// The text on one line of bounded length, control characters escaped.
pub(crate) fn one_line(text: &str) -> String {
    let tail_start = text.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at);
    let head_end = text.char_indices().nth(HEAD_CHARS).map_or(text.len(), |(at, _)| at);
    if head_end >= tail_start {
        return escaped(text);
    }
    format!("{} … {}", escaped(&text[..head_end]), escaped(&text[tail_start..]))
}

fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// A name in at most `width` characters, ellipsis included.
pub(crate) fn cut(name: &str, width: usize) -> String {
    let clean = one_line(name);
    if clean.chars().count() <= width {
        return clean;
    }
    let mut short: String = clean.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_moves_the_cursor_or_floods_the_screen() {
        assert_eq!(one_line("a\nb\u{1b}[2J"), "a\\nb\\u{1b}[2J");
        let cut_down = one_line(&format!("{} at line 3", "x".repeat(1_000_000)));
        assert!(cut_down.chars().count() < 410 && cut_down.ends_with("x at line 3"));
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}

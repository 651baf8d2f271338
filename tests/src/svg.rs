//! What is on a terminal as a picture: a window with rounded corners, dark on every page.
//!
//! It is text, in whatever monospaced font the reader has. Fonts differ in how wide they
//! are, and borrow signs such as `▼` from others; so every run of characters is told its
//! place and its length, and columns line up everywhere.

use std::fmt::Write as _;
use std::ops::Range;

use vt100::{Cell, Color, Screen};

/// How large a character is, in hundredths of a pixel: sums stay exact.
const WIDE: usize = 840;
const HIGH: usize = 1700;
/// How far below its upper edge letters stand.
const BASE: usize = 1300;

/// Around the text, and the bar above it.
const MARGIN: usize = 1400;
const BAR: usize = 3200;

const PLAIN: &str = "#d6dae0";
const PAPER: &str = "#15181e";

/// The sixteen colours, all of them readable on the paper.
const COLOURS: [&str; 16] = [
    "#3b4252", "#ff7b72", "#7ee787", "#f2cc60", "#79c0ff", "#e2a6ff", "#76e3ea", "#d6dae0",
    "#8b949e", "#ffa198", "#aff5b4", "#f8e3a1", "#a5d6ff", "#f0c6ff", "#b3f0ff", "#ffffff",
];

const STYLE: &str = "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\
                     \"DejaVu Sans Mono\",\"Liberation Mono\",monospace;white-space:pre}\
                     .b{font-weight:700}.d{opacity:.6}";

/// How a character looks.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    ink: &'static str,
    /// None if it is that of the window.
    paper: Option<&'static str>,
    /// Of the style sheet, or empty.
    class: &'static str,
}

/// Characters of one look on a line.
struct Run {
    columns: Range<usize>,
    text: String,
    look: Look,
    /// Whether any font for terminals has them.
    is_common: bool,
}

/// Draws what is on a terminal. Only the sixteen colours are told apart.
pub fn svg(screen: &Screen, title: &str) -> String {
    let (lines, columns) = screen.size();
    let (lines, columns) = (lines.get(), columns.get());
    let wide = px(usize::from(columns) * WIDE + 2 * MARGIN);
    let high = px(usize::from(lines) * HIGH + BAR + MARGIN);
    let title = escaped(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" \
         width=\"{wide}\" height=\"{high}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"{PAPER}\" \
         stroke=\"#4a515c\"/>\n",
        px(usize::from(columns) * WIDE + 2 * MARGIN - 100),
        px(usize::from(lines) * HIGH + BAR + MARGIN - 100),
    );
    for (x, colour) in [(18, COLOURS[1]), (36, COLOURS[3]), (54, COLOURS[2])] {
        _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"16\" r=\"5.5\" fill=\"{colour}\"/>");
    }
    _ = writeln!(
        svg,
        "<text x=\"50%\" y=\"21\" text-anchor=\"middle\" fill=\"{}\">{title}</text>\n\
         <g fill=\"{PLAIN}\" xml:space=\"preserve\">",
        COLOURS[8],
    );
    for line in 0..lines {
        let runs = runs(screen, line, columns);
        // All paper first: it must not cover the edges of letters beside it. And in one
        // piece: where two pieces meet one would see a line.
        for runs in runs.chunk_by(|one, next| one.look.paper == next.look.paper) {
            draw_paper(&mut svg, usize::from(line), runs);
        }
        for run in &runs {
            draw_text(&mut svg, usize::from(line), run);
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn runs(screen: &Screen, line: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let cells = (0..columns).filter_map(|column| Some((column, screen.cell(line, column)?)));
    for (column, cell) in cells.filter(|(_, cell)| !cell.is_wide_continuation()) {
        let column = usize::from(column);
        let end = column + if cell.is_wide() { 2 } else { 1 };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (look, is_common) = (look(cell), text.chars().all(is_common));
        match runs.last_mut() {
            Some(run) if run.look == look && run.is_common && is_common => {
                run.text.push_str(text);
                run.columns.end = end;
            }
            _ => runs.push(Run { columns: column..end, text: text.to_owned(), look, is_common }),
        }
    }
    runs
}

fn look(cell: &Cell) -> Look {
    let (ink, paper) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
    let (ink, paper) = match cell.inverse() {
        true => (paper.unwrap_or(PAPER), Some(ink.unwrap_or(PLAIN))),
        false => (ink.unwrap_or(PLAIN), paper),
    };
    let class = match (cell.bold(), cell.dim()) {
        (true, _) => "b",
        (false, true) => "d",
        (false, false) => "",
    };
    Look { ink, paper, class }
}

fn colour(colour: Color) -> Option<&'static str> {
    match colour {
        Color::Idx(number) => COLOURS.get(usize::from(number)).copied(),
        Color::Default | Color::Rgb(..) => None,
    }
}

/// Letters, lines and blocks come from one font, and have one width there.
fn is_common(character: char) -> bool {
    matches!(character, ' '..='~' | '─'..='▟')
}

fn draw_paper(svg: &mut String, line: usize, runs: &[Run]) {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return };
    let Some(paper) = first.look.paper else { return };
    let (start, end) = (first.columns.start, last.columns.end);
    _ = writeln!(
        svg,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{paper}\"/>",
        px(MARGIN + start * WIDE),
        px(BAR + line * HIGH),
        px((end - start) * WIDE),
        px(HIGH),
    );
}

fn draw_text(svg: &mut String, line: usize, run: &Run) {
    let Look { ink, class, .. } = run.look;
    let text = run.text.trim_end_matches(' ');
    // Blanks are as wide as what is there instead of them.
    let end = run.columns.end - (run.text.len() - text.len());
    let trimmed = text.trim_start_matches(' ');
    let start = run.columns.start + (text.len() - trimmed.len());
    if trimmed.is_empty() {
        return;
    }
    _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"",
        px(MARGIN + start * WIDE),
        px(BAR + line * HIGH + BASE),
        px((end - start) * WIDE),
    );
    if ink != PLAIN {
        _ = write!(svg, " fill=\"{ink}\"");
    }
    if !class.is_empty() {
        _ = write!(svg, " class=\"{class}\"");
    }
    _ = writeln!(svg, ">{}</text>", escaped(trimmed));
}

/// Hundredths, as a number without needless digits.
fn px(hundredths: usize) -> String {
    (hundredths as f64 / 100.0).to_string()
}

/// Text that is nothing but text in XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    fn drawn(bytes: &str) -> String {
        let size = |length| NonZeroU16::new(length).unwrap();
        let mut parser = vt100::Parser::new(size(2), size(12), 0);
        parser.process(bytes.as_bytes());
        svg(parser.screen(), "a & b")
    }

    /// All texts with their places and lengths, after a check that every tag is closed
    /// by its own, and that nothing but entities has an `&`.
    fn texts(svg: &str) -> Vec<(String, String, String)> {
        let mut open = Vec::new();
        let mut found = Vec::new();
        for part in svg.split('<').skip(1) {
            let (tag, text) = part.split_once('>').unwrap();
            assert!(!text.contains('>'), "{part}");
            for rest in text.split('&').skip(1) {
                let entity = rest.split_once(';').map(|(entity, _)| entity);
                assert!(matches!(entity, Some("amp" | "lt" | "gt" | "quot")), "{part}");
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            let name = tag.split([' ', '/']).next().unwrap();
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
            let value = |name: &str| {
                let rest = tag.split_once(&format!(" {name}=\""))?.1;
                Some(rest.split_once('"')?.0.to_owned())
            };
            if let (Some(x), Some(length)) = (value("x"), value("textLength")) {
                found.push((x, length, text.trim_end_matches('\n').to_owned()));
            }
        }
        assert!(open.is_empty(), "{open:?} stay open");
        found
    }

    fn at(x: &str, length: &str, text: &str) -> (String, String, String) {
        (x.to_owned(), length.to_owned(), text.to_owned())
    }

    #[test]
    fn what_means_something_in_xml_is_text() {
        let svg = drawn("<a&b>  \"x\"");
        assert_eq!(texts(&svg), [at("14", "84", "&lt;a&amp;b&gt;  &quot;x&quot;")]);
        assert!(svg.contains("<title>a &amp; b</title>"));
    }

    #[test]
    fn what_comes_after_a_wide_character_is_where_it_was() {
        let svg = drawn("a茶b▼c");
        let expected = [
            at("14", "8.4", "a"),
            at("22.4", "16.8", "茶"),
            at("39.2", "8.4", "b"),
            at("47.6", "8.4", "▼"),
            at("56", "8.4", "c"),
        ];
        assert_eq!(texts(&svg), expected);
    }

    #[test]
    fn ink_and_paper_change_places() {
        let svg = drawn("ab\x1b[31;7m c\x1b[1md \x1b[m\r\n\x1b[1;2mx");
        let expected = [
            at("14", "16.8", "ab"),
            at("39.2", "8.4", "c"),
            at("47.6", "8.4", "d"),
            at("14", "8.4", "x"),
        ];
        assert_eq!(texts(&svg), expected);
        let paper = format!(
            "<rect x=\"30.8\" y=\"32\" width=\"33.6\" height=\"17\" fill=\"{}\"/>",
            COLOURS[1]
        );
        assert!(svg.contains(&paper), "{svg}");
        assert!(svg.contains(&format!(" fill=\"{PAPER}\" class=\"b\">d</text>")), "{svg}");
        assert!(svg.contains(" class=\"d\">x</text>"), "{svg}");
    }
}

//! Times on command lines.

use std::time::Duration;

/// Reads a time such as `500ms`, `5s` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err("write a time as 500ms, 5s or 2m".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{digits:?} is not a whole number"))?;
    let length_ms = number.checked_mul(unit_ms).ok_or("too long")?;
    Ok(Duration::from_millis(length_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "s", "-1s", "1.5s", "5h", "99999999999999999999s", "5 s", "é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

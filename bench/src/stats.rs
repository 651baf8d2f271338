//! What many windows say together.

use serde::{Deserialize, Serialize};

/// The middle of some values, and how far apart they are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub quartile: f64,
    pub upper_quartile: f64,
    /// Of how many values.
    pub rounds: usize,
}

impl Spread {
    /// Of any values, but at least one.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Self { median: at(2), quartile: at(1), upper_quartile: at(3), rounds: values.len() }
    }

    /// How far apart the quartiles of the median itself are: the more rounds, the nearer.
    /// (The median of n normal values varies 1.2533/√n times as much as they do.)
    pub fn doubt(&self) -> f64 {
        (self.upper_quartile - self.quartile) * 1.2533 / (self.rounds as f64).sqrt()
    }
}

/// The middle one.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn quartiles_do_not_depend_on_the_order() {
        let spread = Spread::of([9.0, 1.0, 5.0, 3.0, 7.0]);
        assert_eq!((spread.quartile, spread.median, spread.upper_quartile), (3.0, 5.0, 7.0));
    }

    #[test]
    fn more_rounds_of_the_same_leave_less_doubt() {
        let doubt = |rounds| Spread::of((0..rounds).map(|nth| f64::from(nth % 4))).doubt();
        assert!(doubt(4_000) < doubt(40) / 5.0, "{} and {}", doubt(4_000), doubt(40));
        assert_eq!(Spread::of([2.0]).doubt(), 0.0);
    }
}

//! Values inside of a condition. They borrow from the facts and are cheap to copy:
//! what is made on the way is shared, and paid for when it is made.

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value as Json;

use super::EvaluationError;
use super::evaluate::Budget;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// From the least `i64` to the greatest `u64`: whatever JSON has.
    Int(i128),
    Double(f64),
    Text(Text<'a>),
    List(List<'a>),
    Map(&'a serde_json::Map<String, Json>),
}

/// A text of the facts or of the condition, or one made of others.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Given(&'a str),
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Given(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A list of the facts, or one made of other values.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Given(&'a [Json]),
    Made(Rc<[Value<'a>]>),
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Given(values) => values.len(),
            Self::Made(values) => values.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Given(values) => values.get(index).map(Value::from),
            Self::Made(values) => values.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value.into()),
                (_, Some(value)) => Self::Int(value.into()),
                _ => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Text::Given(text)),
            Json::Array(values) => Self::List(List::Given(values)),
            Json::Object(map) => Self::Map(map),
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn text(made: String) -> Self {
        Self::Text(Text::Made(made.into()))
    }

    pub(super) fn list(made: Vec<Self>) -> Self {
        Self::List(List::Made(made.into()))
    }

    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// The order of two numbers, texts or booleans. Other values have none; nor has NaN,
    /// but that can be asked for: `Some(None)`.
    pub(super) fn order(
        &self,
        other: &Self,
        budget: &mut Budget,
    ) -> Result<Option<Option<Ordering>>, EvaluationError> {
        Ok(Some(match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Double(b)) => int_with_double(*a, *b),
            (Self::Double(a), Self::Int(b)) => int_with_double(*b, *a).map(Ordering::reverse),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => {
                budget.spend_on_bytes(a.len().min(b.len()))?;
                Some((**a).cmp(&**b))
            }
            _ => return Ok(None),
        }))
    }

    /// Values of different kinds are different, except numbers. No recursion: the
    /// facts may be nested deeper than any stack.
    pub(super) fn equals(
        &self,
        other: &Self,
        budget: &mut Budget,
    ) -> Result<bool, EvaluationError> {
        let mut pairs = Vec::new();
        let mut next = Some((self.clone(), other.clone()));
        while let Some(pair) = next {
            budget.spend(1)?;
            let equal = match &pair {
                (Self::Null, Self::Null) => true,
                (Self::Text(a), Self::Text(b)) if a.len() != b.len() => false,
                (Self::List(a), Self::List(b)) if a.len() == b.len() => {
                    budget.spend(a.len())?;
                    pairs.extend(a.iter().zip(b.iter()));
                    true
                }
                (Self::Map(a), Self::Map(b)) if a.len() == b.len() => {
                    for (key, a) in *a {
                        budget.spend_on_bytes(key.len())?;
                        let Some(b) = b.get(key) else { return Ok(false) };
                        pairs.push((Value::from(a), Value::from(b)));
                    }
                    true
                }
                (a, b) => a.order(b, budget)? == Some(Some(Ordering::Equal)),
            };
            if !equal {
                return Ok(false);
            }
            next = pairs.pop();
        }
        Ok(true)
    }
}

fn int_with_double(int: i128, double: f64) -> Option<Ordering> {
    // Truncation towards zero is exact, or saturates far outside of our integers.
    let rest = 0.0.partial_cmp(&double.fract());
    (!double.is_nan()).then(|| int.cmp(&(double as i128)).then(rest.unwrap_or(Ordering::Equal)))
}

//! Evaluation of a condition, with a budget: everything that takes time or memory is
//! paid for, so the worst expression over the worst facts ends soon and stays small.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::program::{Each, Eachwise, Fact, Function, Operator, Program};
use super::value::{List, Text, Value};
use super::{EvaluationError, Facts};

/// Steps that one evaluation may take: ten for each byte of 64 KiB, with room.
pub(super) const STEPS_MAX: usize = 1_000_000;

/// Bytes that can be compared, searched or copied in the time of one step.
const BYTES_PER_STEP: usize = 16;

/// Whether a condition holds.
pub(super) fn evaluate(program: &Program, facts: &Facts) -> Result<bool, EvaluationError> {
    Evaluation { facts, budget: Budget { steps: STEPS_MAX }, element: Value::Null }.truth(program)
}

/// The steps that are left.
pub(super) struct Budget {
    steps: usize,
}

impl Budget {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(drop).ok_or(EvaluationError::TooLong)
    }

    pub(super) fn spend_on_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }
}

type Evaluated<'a> = Result<Value<'a>, EvaluationError>;

struct Evaluation<'a> {
    facts: &'a Facts,
    budget: Budget,
    element: Value<'a>,
}

impl<'a> Evaluation<'a> {
    fn truth(&mut self, of: &'a Program) -> Result<bool, EvaluationError> {
        match self.value(of)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(EvaluationError::NotBoolean(other.kind())),
        }
    }

    fn value(&mut self, of: &'a Program) -> Evaluated<'a> {
        self.budget.spend(1)?;
        match of {
            Program::Null => Ok(Value::Null),
            Program::Bool(value) => Ok(Value::Bool(*value)),
            Program::Int(value) => Ok(Value::Int(*value)),
            Program::Double(value) => Ok(Value::Double(*value)),
            Program::Text(text) => Ok(Value::Text(Text::Given(text))),
            Program::List(of) => {
                let values: Result<_, _> = of.iter().map(|of| self.value(of)).collect();
                values.map(Value::list)
            }
            Program::Fact(fact) => self.fact(*fact),
            Program::Element => Ok(self.element.clone()),
            Program::Field(of, name) => match self.value(of)? {
                Value::Map(map) => self.field(map, name),
                other => Err(types(".", &[other])),
            },
            Program::Has(of, name) => match self.value(of)? {
                Value::Map(map) => Ok(Value::Bool(map.contains_key(name))),
                other => Err(types("has", &[other])),
            },
            Program::Not(of) => self.truth(of).map(|truth| Value::Bool(!truth)),
            Program::Negate(of) => match self.value(of)? {
                Value::Int(value) => integer("-", value.checked_neg()),
                Value::Double(value) => Ok(Value::Double(-value)),
                other => Err(types("-", &[other])),
            },
            Program::Logic(of, decides) => self.logic(of, *decides).map(Value::Bool),
            Program::Choice(of) => {
                let [condition, yes, no] = &**of;
                let chosen = if self.truth(condition)? { yes } else { no };
                self.value(chosen)
            }
            Program::Binary(operator, of) => {
                let (a, b) = (self.value(&of[0])?, self.value(&of[1])?);
                self.binary(*operator, a, b)
            }
            Program::Call(function, of) => {
                let value = self.value(of)?;
                self.call(*function, value)
            }
            Program::Each(each, of) => self.each(*each, of),
        }
    }

    fn fact(&self, fact: Fact) -> Evaluated<'a> {
        let Facts { args, result, watch, process, control } = self.facts;
        match fact {
            Fact::Args => args.as_ref().map(Value::from).ok_or(EvaluationError::NoArgs),
            Fact::Result => result.as_ref().map(Value::from).ok_or(EvaluationError::NoResult),
            Fact::Watch => Ok(Value::Map(watch)),
            Fact::Process => Ok(Value::Text(Text::Given(process))),
            Fact::Control => Ok(Value::Text(Text::Given(control))),
        }
    }

    /// As CEL has it, an operand that decides makes up for an error in the other.
    fn logic(&mut self, of: &'a [Program; 2], decides: bool) -> Result<bool, EvaluationError> {
        let first = self.truth(&of[0]);
        if first == Ok(decides) || first == Err(EvaluationError::TooLong) {
            return first;
        }
        let second = self.truth(&of[1]);
        if second == Ok(decides) { second } else { first.and(second) }
    }

    fn each(&mut self, each: Each, of: &'a Eachwise) -> Evaluated<'a> {
        let list = match self.value(&of.list)? {
            Value::List(list) => list,
            Value::Map(map) => {
                self.budget.spend(map.len())?;
                List::Made(map.keys().map(|key| Value::Text(Text::Given(key))).collect())
            }
            other => return Err(types("for each", &[other])),
        };
        match each {
            Each::All => self.decide(&list, of, false).map(Value::Bool),
            Each::Exists => self.decide(&list, of, true).map(Value::Bool),
            Each::ExistsOne => {
                let mut count = 0;
                for element in list.iter() {
                    self.element = element;
                    count += usize::from(self.truth(&of.body)?);
                }
                Ok(Value::Bool(count == 1))
            }
            Each::Map => {
                let mut made = Vec::new();
                for element in list.iter() {
                    self.element = element;
                    let wanted = of.only_if.as_ref().map_or(Ok(true), |of| self.truth(of));
                    if wanted? {
                        made.push(self.value(&of.body)?);
                    }
                }
                Ok(Value::list(made))
            }
        }
    }

    /// [`Self::logic`] over all elements.
    fn decide(
        &mut self,
        list: &List<'a>,
        of: &'a Eachwise,
        decides: bool,
    ) -> Result<bool, EvaluationError> {
        let mut outcome = Ok(!decides);
        for element in list.iter() {
            self.element = element;
            match self.truth(&of.body) {
                Ok(truth) if truth == decides => return Ok(truth),
                Err(EvaluationError::TooLong) => return Err(EvaluationError::TooLong),
                next => outcome = outcome.and(next),
            }
        }
        outcome
    }

    fn binary(&mut self, operator: Operator, a: Value<'a>, b: Value<'a>) -> Evaluated<'a> {
        use Operator as O;
        let name = operator.name();
        match operator {
            O::Equal => a.equals(&b, &mut self.budget).map(Value::Bool),
            O::Different => a.equals(&b, &mut self.budget).map(|equal| Value::Bool(!equal)),
            O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => {
                let order = a.order(&b, &mut self.budget)?.ok_or_else(|| types(name, &[a, b]))?;
                Ok(Value::Bool(order.is_some_and(match operator {
                    O::Less => Ordering::is_lt,
                    O::LessOrEqual => Ordering::is_le,
                    O::Greater => Ordering::is_gt,
                    _ => Ordering::is_ge,
                })))
            }
            O::In => self.is_in(a, b).map(Value::Bool),
            O::Index => self.index(a, b),
            O::Contains | O::StartsWith | O::EndsWith => {
                let (Value::Text(text), Value::Text(part)) = (&a, &b) else {
                    return Err(types(name, &[a, b]));
                };
                self.budget.spend_on_bytes(text.len())?;
                Ok(Value::Bool(match operator {
                    O::Contains => text.contains(&**part),
                    O::StartsWith => text.starts_with(&**part),
                    _ => text.ends_with(&**part),
                }))
            }
            O::Add => match (&a, &b) {
                (Value::Text(a), Value::Text(b)) => {
                    self.budget.spend_on_bytes(a.len() + b.len())?;
                    Ok(Value::text([&**a, &**b].concat()))
                }
                (Value::List(a), Value::List(b)) => {
                    // One for the time, one for the memory.
                    self.budget.spend(2 * (a.len() + b.len()))?;
                    Ok(Value::list(a.iter().chain(b.iter()).collect()))
                }
                _ => arithmetic(name, a, b, i128::checked_add, |a, b| a + b),
            },
            O::Subtract => arithmetic(name, a, b, i128::checked_sub, |a, b| a - b),
            O::Multiply => arithmetic(name, a, b, i128::checked_mul, |a, b| a * b),
            O::Divide => arithmetic(name, a, b, i128::checked_div, |a, b| a / b),
            O::Remainder => match (a, b) {
                (Value::Int(a), Value::Int(b)) => integer(name, a.checked_rem(b)),
                (a, b) => Err(types(name, &[a, b])),
            },
        }
    }

    fn is_in(&mut self, sought: Value<'a>, of: Value<'a>) -> Result<bool, EvaluationError> {
        match (sought, of) {
            (sought, Value::List(list)) => {
                for value in list.iter() {
                    if value.equals(&sought, &mut self.budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::Text(key), Value::Map(map)) => {
                self.budget.spend_on_bytes(key.len())?;
                Ok(map.contains_key(&*key))
            }
            // The keys of JSON are texts.
            (_, Value::Map(_)) => Ok(false),
            (sought, of) => Err(types(Operator::In.name(), &[sought, of])),
        }
    }

    fn index(&mut self, of: Value<'a>, index: Value<'a>) -> Evaluated<'a> {
        match (of, index) {
            (Value::Map(map), Value::Text(key)) => self.field(map, &key),
            (Value::List(list), Value::Int(index)) => {
                let value = usize::try_from(index).ok().and_then(|index| list.get(index));
                value.ok_or(EvaluationError::NoElement(index))
            }
            (of, index) => Err(types(Operator::Index.name(), &[of, index])),
        }
    }

    fn field(&mut self, map: &'a serde_json::Map<String, Json>, key: &str) -> Evaluated<'a> {
        self.budget.spend_on_bytes(key.len())?;
        let value = map.get(key).map(Value::from);
        value.ok_or_else(|| EvaluationError::NoField(key.chars().take(80).collect()))
    }

    fn call(&mut self, function: Function, of: Value<'a>) -> Evaluated<'a> {
        use Function as F;
        let name = function.name();
        if let Value::Text(text) = &of {
            self.budget.spend_on_bytes(text.len())?;
        }
        match (function, of) {
            (F::Size, Value::Text(text)) => Ok(Value::Int(text.chars().count() as i128)),
            (F::Size, Value::List(list)) => Ok(Value::Int(list.len() as i128)),
            (F::Size, Value::Map(map)) => Ok(Value::Int(map.len() as i128)),
            (F::Int, Value::Int(value)) => Ok(Value::Int(value)),
            (F::Int, Value::Double(value)) => {
                integer(name, value.is_finite().then_some(value as i128))
            }
            (F::Int, Value::Text(text)) => integer(name, text.parse().ok()),
            (F::Double, Value::Double(value)) => Ok(Value::Double(value)),
            (F::Double, Value::Int(value)) => Ok(Value::Double(value as f64)),
            (F::Double, Value::Text(text)) => {
                text.parse().map(Value::Double).map_err(|_| EvaluationError::Number(name))
            }
            (F::Text, Value::Text(text)) => Ok(Value::Text(text)),
            (F::Text, Value::Int(value)) => self.written(value.to_string()),
            (F::Text, Value::Double(value)) => self.written(value.to_string()),
            (F::Text, Value::Bool(value)) => self.written(value.to_string()),
            (_, other) => Err(types(name, &[other])),
        }
    }

    /// A double can be written with 300 digits.
    fn written(&mut self, text: String) -> Evaluated<'a> {
        self.budget.spend_on_bytes(text.len())?;
        Ok(Value::text(text))
    }
}

fn arithmetic<'a>(
    name: &'static str,
    a: Value<'a>,
    b: Value<'a>,
    int: impl Fn(i128, i128) -> Option<i128>,
    double: impl Fn(f64, f64) -> f64,
) -> Evaluated<'a> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => integer(name, int(a, b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(double(a, b))),
        (Value::Int(a), Value::Double(b)) => Ok(Value::Double(double(a as f64, b))),
        (Value::Double(a), Value::Int(b)) => Ok(Value::Double(double(a, b as f64))),
        (a, b) => Err(types(name, &[a, b])),
    }
}

fn integer<'a>(name: &'static str, value: Option<i128>) -> Evaluated<'a> {
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let value = value.filter(|value| range.contains(value));
    value.map(Value::Int).ok_or(EvaluationError::Number(name))
}

fn types(operation: &'static str, values: &[Value<'_>]) -> EvaluationError {
    let kinds: Vec<_> = values.iter().map(Value::kind).collect();
    EvaluationError::Types { operation, values: kinds.join(" and ") }
}

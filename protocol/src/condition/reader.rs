//! From text to [`Program`]: `cel` parses, and what cannot be evaluated is refused
//! here, before a breakpoint is planted.

use std::panic::catch_unwind;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, SourceInfo, operators};

use super::program::{Each, Eachwise, Fact, Function, Operator, Program};
use super::{InvalidCondition, What, limits};

/// Deeper than what [`limits`] lets through: only in case the two disagree.
const PARSER_LEVELS_MAX: u16 = 2 * limits::LEVELS_MAX as u16;

/// Parses and checks a text that is within the limits. Needs a deep stack.
pub(super) fn read(text: &str) -> Result<Program, InvalidCondition> {
    // Without its macros the parser leaves `all` and the like as calls.
    let parse = || {
        cel::Env::default()
            .with_optional_support(false)
            .parser()
            .max_recursion_depth(PARSER_LEVELS_MAX)
            .parse_with_source_info(text)
    };
    let (expression, places) = catch_unwind(parse)
        .map_err(|_| InvalidCondition::new(text, 0, What::Parser))?
        .map_err(|errors| syntax_error(text, &errors))?;
    let reader = Reader { text, places };
    let program = reader.read(&expression, None)?;
    if program.is_never_boolean() {
        return reader.refuse(&expression, What::NotBoolean);
    }
    Ok(program)
}

/// The first complaint, without the list of all that could have stood there.
fn syntax_error(text: &str, errors: &cel::ParseErrors) -> InvalidCondition {
    let Some(first) = errors.errors.first() else {
        return InvalidCondition::new(text, 0, What::Parser);
    };
    let column = usize::try_from(first.pos.1 - 1).unwrap_or(0);
    let at = text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    if message.starts_with("OtherError") {
        return InvalidCondition::new(text, at, What::TooDeep);
    }
    let message = message.split(" expecting ").next().unwrap_or_default();
    InvalidCondition::new(text, at, What::Syntax(message.replace("'<EOF>'", "the end")))
}

struct Reader<'a> {
    text: &'a str,
    places: SourceInfo,
}

impl Reader<'_> {
    fn refuse<T>(&self, from: &IdedExpr, what: What) -> Result<T, InvalidCondition> {
        let at = self.places.offset_for(from.id).map_or(0, |(start, _)| start as usize);
        // A call is placed at its parenthesis: the name stands before it.
        let at = match &from.expr {
            Expr::Call(call) if self.text[at..].starts_with('(') => {
                let name = call.func_name.trim_start_matches('.');
                self.text[..at].trim_end().len().saturating_sub(name.len())
            }
            _ => at,
        };
        Err(InvalidCondition::new(self.text, at, what))
    }

    /// `element` is the name that `all`, `exists`, ... gave, inside of them.
    fn read(&self, from: &IdedExpr, element: Option<&str>) -> Result<Program, InvalidCondition> {
        let read = |from: &IdedExpr| self.read(from, element);
        Ok(match &from.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Null => Program::Null,
                LiteralValue::Boolean(value) => Program::Bool(*value.inner()),
                LiteralValue::Int(value) => Program::Int(i128::from(*value.inner())),
                LiteralValue::UInt(value) => Program::Int(i128::from(*value.inner())),
                LiteralValue::Double(value) => Program::Double(*value.inner()),
                LiteralValue::String(value) => Program::Text(value.inner().to_owned()),
                LiteralValue::Bytes(_) => return self.refuse(from, What::Literal),
            },
            Expr::Ident(name) if Some(name.as_str()) == element => Program::Element,
            Expr::Ident(name) => match fact(name) {
                Some(fact) => Program::Fact(fact),
                None => return self.refuse(from, What::Name(name.clone())),
            },
            Expr::Select(select) => {
                Program::Field(Box::new(read(&select.operand)?), select.field.clone())
            }
            Expr::List(list) => {
                Program::List(list.elements.iter().map(read).collect::<Result<_, _>>()?)
            }
            Expr::Call(call) => self.read_call(from, call, element)?,
            _ => return self.refuse(from, What::Literal),
        })
    }

    fn read_call(
        &self,
        from: &IdedExpr,
        call: &CallExpr,
        element: Option<&str>,
    ) -> Result<Program, InvalidCondition> {
        let read = |from: &IdedExpr| self.read(from, element);
        let name = call.func_name.as_str();
        Ok(match (&call.target, &call.args[..]) {
            (None, [of]) if name == operators::LOGICAL_NOT => Program::Not(Box::new(read(of)?)),
            (None, [of]) if name == operators::NEGATE => Program::Negate(Box::new(read(of)?)),
            (None, [of]) if name == operators::HAS => {
                let Expr::Select(select) = &of.expr else { return self.refuse(of, What::Has) };
                Program::Has(Box::new(read(&select.operand)?), select.field.clone())
            }
            (None, [a, b]) if name == operators::LOGICAL_AND || name == operators::LOGICAL_OR => {
                Program::Logic(Box::new([read(a)?, read(b)?]), name == operators::LOGICAL_OR)
            }
            (None, [a, b, c]) if name == operators::CONDITIONAL => {
                Program::Choice(Box::new([read(a)?, read(b)?, read(c)?]))
            }
            (None, [a, b]) if let Some(operator) = operator(name) => {
                Program::Binary(operator, Box::new([read(a)?, read(b)?]))
            }
            (Some(list), [variable, rest @ ..]) if let Some(each) = each(name) => {
                if element.is_some() {
                    return self.refuse(from, What::Nested);
                }
                let Expr::Ident(variable) = &variable.expr else {
                    return self.refuse(variable, What::Element);
                };
                let inside = |from: &IdedExpr| self.read(from, Some(variable));
                let (only_if, body) = match rest {
                    [only_if, body] if name == operators::MAP => {
                        (Some(inside(only_if)?), inside(body)?)
                    }
                    [only_if] if name == operators::FILTER => {
                        (Some(inside(only_if)?), Program::Element)
                    }
                    [body] => (None, inside(body)?),
                    _ => return self.refuse(from, What::Function(name.to_owned())),
                };
                Program::Each(each, Box::new(Eachwise { list: read(list)?, only_if, body }))
            }
            (Some(a), [b]) if let Some(operator) = text_operator(name) => {
                Program::Binary(operator, Box::new([read(a)?, read(b)?]))
            }
            (Some(of), []) if name == "size" => Program::Call(Function::Size, Box::new(read(of)?)),
            (None, [of]) if let Some(function) = function(name) => {
                Program::Call(function, Box::new(read(of)?))
            }
            _ => return self.refuse(from, What::Function(name.to_owned())),
        })
    }
}

fn fact(name: &str) -> Option<Fact> {
    Some(match name {
        "args" => Fact::Args,
        "result" => Fact::Result,
        "watch" => Fact::Watch,
        "process" => Fact::Process,
        "control" => Fact::Control,
        _ => return None,
    })
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::Different,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        operators::INDEX => Operator::Index,
        _ => return None,
    })
}

fn each(name: &str) -> Option<Each> {
    Some(match name {
        operators::ALL => Each::All,
        operators::EXISTS => Each::Exists,
        operators::EXISTS_ONE | "existsOne" => Each::ExistsOne,
        operators::FILTER | operators::MAP => Each::Map,
        _ => return None,
    })
}

fn text_operator(name: &str) -> Option<Operator> {
    [Operator::Contains, Operator::StartsWith, Operator::EndsWith]
        .into_iter()
        .find(|operator| operator.name() == name)
}

fn function(name: &str) -> Option<Function> {
    [Function::Size, Function::Int, Function::Double, Function::Text]
        .into_iter()
        .find(|function| function.name() == name)
}

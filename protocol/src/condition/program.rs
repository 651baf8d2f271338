//! A condition that has been read: only what can be evaluated.

/// One node of a condition.
#[derive(Debug)]
pub(super) enum Program {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Text(String),
    List(Vec<Program>),
    Fact(Fact),
    /// The element that `all`, `exists`, ... are at.
    Element,
    Field(Box<Program>, String),
    Has(Box<Program>, String),
    Not(Box<Program>),
    Negate(Box<Program>),
    /// Two operands, and the value of one that decides: false for `&&`, true for `||`.
    Logic(Box<[Program; 2]>, bool),
    Choice(Box<[Program; 3]>),
    Binary(Operator, Box<[Program; 2]>),
    Call(Function, Box<Program>),
    Each(Each, Box<Eachwise>),
}

/// The variables.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Args,
    Result,
    Watch,
    Process,
    Control,
}

/// Operators on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Index,
    Contains,
    StartsWith,
    EndsWith,
}

impl Operator {
    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::Different => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Index => "[ ]",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
        }
    }
}

/// Functions on one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Size,
    Int,
    Double,
    Text,
}

impl Function {
    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Int => "int",
            Self::Double => "double",
            Self::Text => "string",
        }
    }
}

/// What is done with each element of a list, or with each key of a map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Each {
    All,
    Exists,
    ExistsOne,
    Map,
}

/// The parts of `list.map(x, only_if, body)`; `filter(x, p)` is `map(x, p, x)`.
#[derive(Debug)]
pub(super) struct Eachwise {
    pub(super) list: Program,
    pub(super) only_if: Option<Program>,
    pub(super) body: Program,
}

impl Program {
    /// Whether its value is known to be neither true nor false.
    pub(super) fn is_never_boolean(&self) -> bool {
        use Operator::{Add, Divide, Multiply, Remainder, Subtract};
        match self {
            Self::Null | Self::Int(_) | Self::Double(_) | Self::Text(_) | Self::List(_) => true,
            Self::Negate(_) | Self::Call(..) | Self::Each(Each::Map, _) => true,
            Self::Fact(fact) => matches!(fact, Fact::Watch | Fact::Process | Fact::Control),
            Self::Binary(operator, _) => {
                matches!(operator, Add | Subtract | Multiply | Divide | Remainder)
            }
            _ => false,
        }
    }
}

//! What breakpoints get to see of messages, as JSON.

use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe};

use serde::Serialize;
use serde_json::Value;

use crate::controls::Controls;

/// The arguments of a call.
pub(crate) fn args<T: Serialize>(controls: &Controls, request: &T) -> Value {
    controls.redact(inner(value(request)))
}

/// The result of a call.
pub(crate) fn result<T: Serialize, E: Display>(
    controls: &Controls,
    outcome: &Result<T, E>,
) -> Value {
    match outcome {
        Ok(response) => controls.redact(inner(value(response))),
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    }
}

/// tarpc's requests and responses are enums with the method as variant: what is in it.
fn inner(value: Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 1 => {
            fields.into_iter().next().map(|(_, inner)| inner).unwrap_or_default()
        }
        other => other,
    }
}

/// A value as people see it; one that cannot be written says why. Writing it is the
/// program's own code, which nobody has asked to run: if it panics, only this is lost.
pub fn value<T: Serialize + ?Sized>(value: &T) -> Value {
    let written = panic::catch_unwind(AssertUnwindSafe(|| serde_json::to_value(value)));
    match written {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => Value::String(format!("({error})")),
        Err(_) => Value::String("(writing it panics)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serializer;

    use super::*;

    struct Bomb;

    impl Serialize for Bomb {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("this test wants it")
        }
    }

    #[test]
    fn a_value_that_cannot_be_written_harms_nobody() {
        assert_eq!(value(&Bomb), Value::String("(writing it panics)".to_owned()));
        assert_eq!(value(&7), Value::from(7));
        let controls = Controls::new(ddbx_protocol::ProcessIndex(1));
        controls.set_redacted(["card".to_owned()]);
        let args = |card| Value::from_iter([("Pay", Value::from_iter([("card", card)]))]);
        assert_eq!(super::args(&controls, &args(1)), super::args(&controls, &args(2)));
    }
}

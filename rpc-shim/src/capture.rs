//! What breakpoints get to see of messages, as JSON.

use std::fmt::Display;

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

/// A value as people see it; one that cannot be written says why.
pub fn value<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| Value::String(format!("({error})")))
}

//! Options as JSON.

use crate::error;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

/// Reads options from JSON.
///
/// # Errors
/// `OptionError`, which names the option.
pub(crate) fn parse<T: DeserializeOwned>(py: Python<'_>, json: &str) -> PyResult<T> {
    let mut from = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let mut path = error.path().iter().filter_map(|segment| match segment {
            serde_path_to_error::Segment::Map { key } => Some(key.as_str()),
            _ => None,
        });
        let option = path.next_back().unwrap_or("options").to_owned();
        let message = error.inner().to_string();
        // The place in the JSON text, which the user has not written.
        let message = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
        error::option(py, &format!("`{option}`: {message}"))
    })
}

//! The cases behind the test vectors. Only add cases, at the end of a file: a changed vector means a changed order, and
//! training runs that cannot resume.

mod configuration;
mod orders;
mod refusals;
mod sources;
mod states;
mod steps;
mod substitutes;

use serde_json::Value;
use shardtool_order::Error;

/// File name and text of every file of vectors: one JSON object per line.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    let lines = |values: Vec<Value>| values.iter().map(|v| format!("{v}\n")).collect::<String>();
    vec![
        ("keys.jsonl", lines(orders::keys())),
        ("permutations.jsonl", lines(orders::permutations())),
        ("orders.jsonl", lines(orders::orders())),
        ("sources.jsonl", lines(sources::sources())),
        ("steps.jsonl", lines(steps::steps())),
        ("substitutes.jsonl", lines(substitutes::substitute_cases())),
        ("refusals.jsonl", lines(refusals::refusals())),
        ("states.jsonl", lines(states::states())),
        ("resumes.jsonl", lines(states::resumes())),
    ]
}

/// The largest number of source positions.
const TWO_63: u64 = 1 << 63;

fn hex(value: u64) -> String {
    format!("{value:016x}")
}

/// Adds the members of `more` to `object`.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(to), Value::Object(from)) = (&mut object, more) {
        to.extend(from);
    }
    object
}

/// Positions of a long domain: both ends, and some between.
fn points(len: u64) -> Vec<u64> {
    let between = (1..8).map(|i| (u128::from(len) * i / 8) as u64);
    (0..4).chain(between).chain([len - 2, len - 1]).collect()
}

/// The name of a reason in the specification: the name of the error's variant.
fn reason(error: &Error) -> String {
    format!("{error:?}").chars().take_while(|c| c.is_ascii_alphanumeric()).collect()
}

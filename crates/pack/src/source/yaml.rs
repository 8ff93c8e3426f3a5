//! Reads YAML files of settings: mappings, lists and scalars as JSON values. What may expand or mean two things is an error with its
//! line: aliases, tags, a key that occurs twice, and more than one document.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Mappings and lists that lie in each other, at most.
const DEPTH: usize = 64;

/// A collection that is being read.
enum Open {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Mapping(Map<String, Value>, Option<String>),
}

/// Parses a text. A plain scalar is a number, a Boolean or null if YAML 1.2's core schema says so, and otherwise text.
///
/// # Errors
/// What is wrong, and the line from 1.
pub(super) fn parse(text: &str) -> Result<Value, (u64, String)> {
    let (mut open, mut document): (Vec<Open>, _) = (vec![], None);
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| (error.marker().line() as u64, format!("not YAML: {}", error.info())))?;
        let wrong = |problem: &str| Err((span.start.line() as u64, problem.to_owned()));
        let value = match event {
            Event::Alias(_) => return wrong("an alias (`*name`); write the value itself"),
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return wrong("a tag (`!name`); write the plain value");
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEPTH => {
                return wrong("lists and mappings that are nested too deep");
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(vec![]));
                continue;
            }
            Event::MappingStart(..) => {
                if let Some(Open::Mapping(_, key @ None)) = open.last_mut() {
                    *key = Some(String::new());
                    return wrong("a mapping as a key; expected text");
                }
                open.push(Open::Mapping(Map::new(), None));
                continue;
            }
            Event::Scalar(text, style, ..) => {
                if let Some(Open::Mapping(_, key @ None)) = open.last_mut() {
                    *key = Some(text.into_owned());
                    continue;
                }
                if style == ScalarStyle::Plain { plain(&text) } else { Value::from(&*text) }
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Value::from(list),
                Some(Open::Mapping(members, _)) => Value::Object(members),
                None => return wrong("not YAML: an end without a beginning"),
            },
            Event::DocumentStart(_) if document.is_some() => return wrong("another document in the file"),
            _ => continue,
        };
        match open.last_mut() {
            Some(Open::List(list)) => list.push(value),
            Some(Open::Mapping(members, key)) => {
                let Some(name) = key.take() else { return wrong("a list as a key; expected text") };
                if members.insert(name.clone(), value).is_some() {
                    return wrong(&format!("`{name}` occurs twice"));
                }
            }
            None => document = Some(value),
        }
    }
    Ok(document.unwrap_or_default())
}

/// Returns the value of a plain scalar.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        // Digits with leading zeros, as names of classes may be, are text.
        text => match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Value::from(number),
            _ => Value::from(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_read_as_they_are_meant() {
        let text = "# comment\npath: ../data # here\ntrain: [a, 'b']\nval:\n  - c\nnames:\n  0: person\n  1: \"01\"\nnc: 2\ntest:\n\
            d: 007\ne: yes\nf: true\n";
        let expected = json!({"path": "../data", "train": ["a", "b"], "val": ["c"], "names": {"0": "person", "1": "01"},
            "nc": 2, "test": null, "d": "007", "e": "yes", "f": true});
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(""), Ok(Value::Null));
    }

    #[test]
    fn what_expands_or_means_two_things_is_refused_by_line() {
        let laughs = "a: &a [x, x]\nb: [*a, *a]\n";
        let deep = "[".repeat(100_000);
        let nested = "- ".repeat(100);
        for (text, line, part) in [
            (laughs, 2, "alias"),
            ("a: 1\na: 2\n", 2, "`a` occurs twice"),
            ("a: !x 1", 1, "tag"),
            ("a: 1\n---\nb: 1\n", 2, "another document"),
            ("? {a: 1}\n: 2", 1, "as a key"),
            ("? [a]\n: 2", 1, "as a key"),
            ("a: [1, 2", 1, "not YAML"),
            (&deep, 1, ""),
            (&nested, 1, "too deep"),
        ] {
            let (found, problem) = parse(text).unwrap_err();
            assert!(found >= line && problem.contains(part), "{part}: {found} {problem}");
        }
    }
}

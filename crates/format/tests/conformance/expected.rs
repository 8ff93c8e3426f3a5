//! `expected.json`: what a reader must print for a dataset. The protocol is in `fixtures/conformance/README.md`.

use serde_json::{Value, json};

/// The lines of `read` and `verify`.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) requires: Vec<String>,
    pub(crate) read: Vec<Value>,
    pub(crate) findings: Vec<Value>,
    /// The numbers of good records that a verifier may print, if they are not those that follow from the lines.
    pub(crate) good: Option<Vec<usize>>,
}

impl Expected {
    /// A dataset whose manifest is refused.
    pub(crate) fn refused(name: &str) -> Self {
        let empty = Expected { requires: vec![], read: vec![json!({"refused": name})], findings: vec![], good: None };
        empty.finds(name, "dataset.json", None, None)
    }

    /// Adds a finding.
    pub(crate) fn finds(mut self, name: &str, file: &str, record: Option<u64>, offset: Option<u64>) -> Self {
        self.findings.push(json!({"finding": name, "file": file, "record": record, "offset": offset}));
        self
    }

    /// Sets the numbers of good records, in a dataset whose records are not numbered as their rows.
    pub(crate) fn with_good(mut self, good: &[usize]) -> Self {
        self.good = Some(good.to_vec());
        self
    }

    /// Makes the last finding one that needs a decoder: `jpeg` or `zstd`.
    pub(crate) fn decoding(mut self, decoder: &str) -> Self {
        self.findings.last_mut().expect("a finding")["decoder"] = json!(decoder);
        self
    }

    /// Replaces a record by the error that prevents it.
    pub(crate) fn loses(self, split: &str, record: u64, error: &str) -> Self {
        self.record(split, record, |_| json!({"split": split, "record": record, "error": error}))
    }

    /// Accepts an error, too, where a reader may detect damage of a record.
    pub(crate) fn may_lose(self, split: &str, record: u64, errors: &[&str]) -> Self {
        self.record(split, record, |line| {
            let errors = errors.iter().map(|error| json!({"split": split, "record": record, "error": error}));
            let delivered = match line.get("any").and_then(Value::as_array) {
                Some(choices) => choices.clone(),
                None if line.get("error").is_some() => vec![],
                None => vec![line.clone()],
            };
            json!({"any": delivered.into_iter().chain(errors).collect::<Vec<_>>()})
        })
    }

    /// Changes the line of a record.
    pub(crate) fn record(mut self, split: &str, record: u64, change: impl FnOnce(&Value) -> Value) -> Self {
        let is_wanted = |line: &Value| {
            let line = line.get("any").map_or(line, |choices| &choices[0]);
            line["split"] == split && line["record"] == record && is_record(line)
        };
        let line = self.read.iter_mut().find(|line| is_wanted(line));
        let line = line.unwrap_or_else(|| panic!("record {record} of {split}"));
        *line = change(line);
        self
    }

    /// Accepts each of several values of one member of a record.
    pub(crate) fn record_any(self, split: &str, record: u64, member: &str, values: &[Value]) -> Self {
        self.record(split, record, |line| {
            let line = |value: &Value| {
                let mut line = line.clone();
                line[member] = value.clone();
                line
            };
            json!({"any": values.iter().map(line).collect::<Vec<_>>()})
        })
    }

    /// Replaces the values of a column by the error of that column.
    pub(crate) fn loses_column(mut self, split: &str, shard: usize, column: &str, error: &str) -> Self {
        let line = self.column(split, shard, column);
        *line = json!({"split": split, "shard": shard, "column": column, "error": error});
        self
    }

    /// Replaces the value of a row of a column.
    pub(crate) fn column_value(mut self, split: &str, shard: usize, column: &str, row: usize, value: Value) -> Self {
        self.column(split, shard, column)["values"][row] = value;
        self
    }

    fn column(&mut self, split: &str, shard: usize, column: &str) -> &mut Value {
        let line = self.read.iter_mut().find(|l| l["column"] == column && l["shard"] == shard && l["split"] == split);
        line.unwrap_or_else(|| panic!("column {column} of shard {shard} of {split}"))
    }

    /// Removes the columns and lookups of a split's shards from `shard` on, if `columns` is given only these.
    pub(crate) fn without(mut self, keep: impl Fn(&Value) -> bool) -> Self {
        self.read.retain(|line| keep(line));
        self
    }

    /// Removes the lines of lookups.
    pub(crate) fn without_lookups(self) -> Self {
        self.without(|line| line.get("lookup").is_none())
    }

    /// Removes the lines of columns and lookups.
    pub(crate) fn without_index(self) -> Self {
        self.without_lookups().without(|line| line.get("column").is_none())
    }

    /// Returns the numbers of good records that a verifier may print: all that are delivered, or these without those that a
    /// finding names.
    fn good(&self) -> Vec<usize> {
        if let Some(good) = &self.good {
            return good.clone();
        }
        let named = |line: &Value| self.findings.iter().any(|f| f["record"].is_u64() && f["record"] == line["record"]);
        let (mut least, mut most) = (0, 0);
        for line in self.read.iter().filter(|line| is_record(line)) {
            let choices = line.get("any").and_then(Value::as_array).map_or(std::slice::from_ref(line), Vec::as_slice);
            let delivered = |line: &Value| line.get("error").is_none();
            least += usize::from(choices.iter().all(|choice| delivered(choice) && !named(choice)));
            most += usize::from(choices.iter().any(delivered));
        }
        (least..=most).collect()
    }

    /// Returns the lines of `verify`.
    pub(crate) fn verify(&self) -> Vec<Value> {
        let good = match self.good()[..] {
            [one] => json!(one),
            ref several => json!(several),
        };
        self.findings.iter().cloned().chain([json!({"good": good})]).collect()
    }

    /// Returns the text of `expected.json`, with a line per line of the protocol.
    pub(crate) fn text(&self) -> String {
        let lines = |lines: &[Value]| {
            let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
            format!("[\n{}\n ]", lines.join(",\n"))
        };
        let requires = match self.requires.is_empty() {
            true => String::new(),
            false => format!(" \"requires\": {},\n", json!(self.requires)),
        };
        format!("{{\n{requires} \"read\": {},\n \"verify\": {}\n}}\n", lines(&self.read), lines(&self.verify()))
    }
}

fn is_record(line: &Value) -> bool {
    let line = line.get("any").map_or(line, |choices| &choices[0]);
    line.get("record").is_some() && line.get("lookup").is_none()
}

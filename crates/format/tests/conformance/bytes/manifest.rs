//! The text of a manifest.

use super::crc::crc32c;

/// The members of a manifest that the builder decides.
pub(crate) struct Members<'a> {
    pub(crate) requires: &'a [&'a str],
    pub(crate) image: Option<&'a str>,
    pub(crate) label: Option<&'a str>,
    pub(crate) label_offset: i64,
    pub(crate) features: Vec<(&'a str, &'a str)>,
    pub(crate) classes: &'a [&'a str],
    /// The lines of the shards of each split.
    pub(crate) splits: Vec<(&'a str, Vec<String>)>,
    pub(crate) keypoints: Option<&'a str>,
    pub(crate) private: &'a [(&'a str, &'a str)],
    /// Names and logical types of the features that have one.
    pub(crate) logical: &'a [(&'a str, &'a str)],
    /// Of a changed dataset.
    pub(crate) version: Option<Version<'a>>,
}

impl Members<'_> {
    /// Returns whether the manifest has something that 1.0 does not have.
    fn is_later(&self) -> bool {
        !self.logical.is_empty()
            || self.keypoints.is_some()
            || self.version.is_some()
            || self.requires.contains(&"foreign")
    }
}

/// The members of a changed dataset.
pub(crate) struct Version<'a> {
    pub(crate) number: u64,
    pub(crate) parent: &'a str,
    pub(crate) command: &'a str,
    /// `message` or `author`, and its value.
    pub(crate) given: &'a [(&'a str, &'a str)],
    pub(crate) tags: &'a [(&'a str, u64)],
    /// The value of the member `purged`.
    pub(crate) purged: Option<String>,
    /// Names of features, each with its type; without one it is dropped.
    pub(crate) columns: Vec<(&'a str, Option<&'a str>)>,
}

impl Version<'_> {
    /// Returns the members that follow `created_by`.
    fn lines(&self) -> Vec<String> {
        let given: String = self.given.iter().map(|(name, value)| format!(", \"{name}\": {}", string(value))).collect();
        let tags: Vec<String> = self
            .tags
            .iter()
            .map(|(name, number)| format!("{{\"name\": {}, \"number\": {number}}}", string(name)))
            .collect();
        let (number, parent, command) = (self.number, self.parent, string(self.command));
        let version = format!("{{\"number\": {number}, \"parent\": \"{parent}\", \"command\": {command}{given}}}");
        let purged = self.purged.as_ref().map(|purged| format!("\"purged\": {purged}"));
        let lines = [format!("\"dataset_version\": {version}"), format!("\"tags\": {}", array("  ", &tags))];
        lines.into_iter().chain(purged).collect()
    }
}

/// Returns a string in JSON, escaped as a writer escapes it.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out + "\""
}

/// Returns an array with one item per line.
fn array(indent: &str, items: &[String]) -> String {
    if items.is_empty() {
        return "[]".to_owned();
    }
    let items: Vec<String> = items.iter().map(|item| format!("{indent}  {item}")).collect();
    format!("[\n{}\n{indent}]", items.join(",\n"))
}

/// Returns the manifest in its canonical layout.
pub(crate) fn file(members: &Members<'_>) -> Vec<u8> {
    let nullable = |name: Option<&str>| name.map_or("null".to_owned(), string);
    let feature = |name: &str, kind: &str| {
        let logical = members.logical.iter().find(|(feature, _)| *feature == name);
        let logical = logical.map_or(String::new(), |(_, logical)| format!(", \"logical\": {}", string(logical)));
        format!("{{\"name\": {}, \"type\": {}{logical}}}", string(name), string(kind))
    };
    let features: Vec<String> = members.features.iter().map(|(name, kind)| feature(name, kind)).collect();
    let classes: Vec<String> = members.classes.iter().map(|class| string(class)).collect();
    let splits: Vec<String> = members
        .splits
        .iter()
        .map(|(name, shards)| format!("{{\"name\": {}, \"shards\": {}}}", string(name), array("    ", shards)))
        .collect();
    let mut lines =
        vec!["\"format\": \"shardtool\"".to_owned(), format!("\"version\": \"1.{}\"", u8::from(members.is_later()))];
    if !members.requires.is_empty() {
        let names: Vec<String> = members.requires.iter().map(|name| string(name)).collect();
        lines.push(format!("\"requires\": [{}]", names.join(", ")));
    }
    lines.push("\"created_by\": \"shardtool fixtures\"".to_owned());
    lines.extend(members.version.iter().flat_map(Version::lines));
    lines.push(format!("\"image\": {}", nullable(members.image)));
    lines.push(format!("\"label\": {}", nullable(members.label)));
    lines.push(format!("\"label_offset\": {}", members.label_offset));
    lines.push(format!("\"features\": {}", array("  ", &features)));
    if let Some(version) = &members.version {
        let column = |(name, kind): &(&str, Option<&str>)| match kind {
            Some(kind) => feature(name, kind),
            None => format!("{{\"name\": {}, \"dropped\": true}}", string(name)),
        };
        let columns: Vec<String> = version.columns.iter().map(column).collect();
        lines.push(format!("\"columns\": {}", array("  ", &columns)));
    }
    lines.push(format!("\"classes\": {}", array("  ", &classes)));
    lines.extend(members.keypoints.map(|keypoints| format!("\"keypoints\": {keypoints}")));
    lines.push(format!("\"splits\": {}", array("  ", &splits)));
    lines.extend(members.private.iter().map(|(name, value)| format!("{}: {}", string(name), string(value))));
    sealed(format!("{{\n  {},\n", lines.join(",\n  ")).as_bytes())
}

/// Returns everything before the last member, followed by that member with the right CRC.
pub(crate) fn sealed(body: &[u8]) -> Vec<u8> {
    let tail = |digits: &str| format!("  \"crc32c\": \"{digits}\"\n}}\n");
    let crc = crc32c(&[body, tail("00000000").as_bytes()].concat());
    [body, tail(&format!("{crc:08x}")).as_bytes()].concat()
}

/// Length of the last member's line and what follows.
pub(crate) const TAIL: usize = "  \"crc32c\": \"hhhhhhhh\"\n}\n".len();

/// Changes everything before the last member, and corrects the CRC.
pub(crate) fn forge(file: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = file[..file.len() - TAIL].to_vec();
    change(&mut body);
    sealed(&body)
}

/// Replaces the first `from` by `to`, and corrects the CRC.
pub(crate) fn replace(file: &[u8], from: &str, to: &[u8]) -> Vec<u8> {
    forge(file, |body| {
        let at = body.windows(from.len()).position(|part| part == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("no {from:?} in the manifest"));
        body.splice(at..at + from.len(), to.iter().copied());
    })
}

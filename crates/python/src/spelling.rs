//! Replaces command-line flags in messages of the Rust crates by Python's keyword arguments.

/// Flags whose value is one of some words, and the arguments.
const WORDS: [(&str, &str); 9] = [
    ("from", "kind"),
    ("splits", "splits"),
    ("member-key", "member_key"),
    ("annotated", "annotated"),
    ("boxes", "boxes"),
    ("box-unit", "box_unit"),
    ("on-error", "on_error"),
    ("truncated", "truncated"),
    ("jpeg", "jpeg"),
];
/// Flags without a value, and the arguments.
const SWITCHES: [(&str, &str); 8] = [
    ("force", "force"),
    ("ignore-unknown", "ignore_unknown"),
    ("replace", "replace"),
    ("add-classes", "add_classes"),
    ("allow-empty", "allow_empty"),
    ("ignore-times", "ignore_times"),
    ("single-writer", "single_writer"),
    ("strip-metadata", "strip_metadata"),
];
/// Flags with another value, and the arguments.
const VALUES: [(&str, &str); 11] = [
    ("classes", "classes"),
    ("split", "split"),
    ("images", "images"),
    ("missing", "missing"),
    ("rows-of", "rows_of"),
    ("keypoints", "keypoints"),
    ("keys", "keys"),
    ("key", "key"),
    ("name", "names"),
    ("shard-size", "shard_size"),
    ("label-offset", "label_offset"),
];

/// Replaces flags in a message by keyword arguments.
pub(crate) fn in_python(message: &str) -> String {
    let message = message.replace("run the same command again", "make the same call again");
    let mut rest = &*message;
    let mut out = String::new();
    while let Some(at) = rest.find("--") {
        out += &rest[..at];
        rest = &rest[at..];
        // `photos--images` is the name of a file, not a flag.
        if out.ends_with(|before: char| !before.is_whitespace() && !matches!(before, '(' | '`')) {
            let dashes = rest.len() - rest.trim_start_matches('-').len();
            out += &rest[..dashes];
            rest = &rest[dashes..];
            continue;
        }
        let flag_end = 2 + rest[2..].find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len() - 2);
        let (text, after) = argument(&rest[2..flag_end], &rest[flag_end..])
            .unwrap_or_else(|| (rest[..flag_end].to_owned(), &rest[flag_end..]));
        out += &text;
        rest = after;
    }
    out + rest
}

/// Returns the keyword argument for a flag, and what follows it and its value.
fn argument<'m>(flag: &str, after: &'m str) -> Option<(String, &'m str)> {
    let named =
        |known: &[(&str, &'static str)]| known.iter().find(|(name, _)| *name == flag).map(|(_, keyword)| *keyword);
    let (value, behind) = next(after);
    match flag {
        // `--column NAME:TYPE`.
        "column" => {
            let (name, kind) = value.rsplit_once(':').unwrap_or((value, "TYPE"));
            Some((format!("`columns={{\"{name}\": \"{kind}\"}}`"), behind))
        }
        // `--map OURS=THEIRS`, once or several times in a row.
        "map" => {
            let (mut members, mut behind) = (vec![member(value)?], behind);
            while let Some(more) = behind.strip_prefix(" --map") {
                let (value, end) = next(more);
                members.push(member(value)?);
                behind = end;
            }
            Some((format!("`map={{{}}}`", members.join(", ")), behind))
        }
        _ => {
            if let Some(keyword) = named(&WORDS) {
                let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
                let behind = if is_word || value == "KIND" { behind } else { after };
                return Some((
                    if is_word { format!("`{keyword}=\"{value}\"`") } else { format!("`{keyword}=`") },
                    behind,
                ));
            }
            if let Some(keyword) = named(&SWITCHES) {
                return Some((format!("`{keyword}=True`"), after));
            }
            let keyword = named(&VALUES)?;
            // What the user is to name is written in capitals.
            let is_name = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_uppercase());
            Some((format!("`{keyword}={}`", if is_name { value } else { "" }), if is_name { behind } else { after }))
        }
    }
}

/// Returns the value behind a flag, which may be in quotes, and what follows.
fn next(after: &str) -> (&str, &str) {
    let Some(rest) = after.strip_prefix(' ') else { return ("", after) };
    let mut quoted = false;
    let ends = |c: char| {
        quoted ^= c == '\'';
        !quoted && (c.is_whitespace() || matches!(c, ';' | ',' | ')'))
    };
    let end = rest.find(ends).unwrap_or(rest.len());
    rest.split_at(end)
}

/// Returns the member of a mapping for `OURS=THEIRS`.
fn member(value: &str) -> Option<String> {
    let (ours, theirs) = value.split_once('=')?;
    let theirs = match theirs.strip_prefix('\'').and_then(|theirs| theirs.strip_suffix('\'')) {
        Some(pattern) => format!("\"{pattern}\""),
        // A word in capitals is what the user is to name.
        None if theirs.bytes().all(|byte| byte.is_ascii_uppercase()) => theirs.to_owned(),
        None => format!("\"{theirs}\""),
    };
    Some(format!("\"{ours}\": {theirs}"))
}

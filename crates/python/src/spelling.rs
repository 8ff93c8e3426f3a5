//! Replaces command-line flags in messages of the Rust crates by Python's keyword arguments.

/// Command line → Python. A text comes before shorter ones that it contains.
const SPELLINGS: [(&str, &str); 23] = [
    ("--from KIND", "`kind=`"),
    ("--map image=FIELD", "`map={\"image\": FIELD}`"),
    ("--map label=FIELD", "`map={\"label\": FIELD}`"),
    ("--on-error skip", "`on_error=\"skip\"`"),
    ("--shard-size", "`shard_size=`"),
    ("--classes", "`classes=`"),
    ("--force", "`force=True`"),
    ("--splits names", "`splits=\"names\"`"),
    ("--splits lists", "`splits=\"lists\"`"),
    ("--splits none", "`splits=\"none\"`"),
    ("--split", "`split=`"),
    ("--images FOLDER", "`images=FOLDER`"),
    ("--images", "`images=`"),
    ("--missing", "`missing=`"),
    ("--rows-of", "`rows_of=`"),
    ("--ignore-unknown", "`ignore_unknown=True`"),
    ("--replace", "`replace=True`"),
    ("--add-classes", "`add_classes=True`"),
    ("--keypoints", "`keypoints=`"),
    ("--keys", "`keys=`"),
    ("--key", "`key=`"),
    ("--name", "`names=`"),
    ("run the same command again", "make the same call again"),
];

/// Replaces flags in a message by keyword arguments.
pub(crate) fn in_python(message: &str) -> String {
    let mut message = message.to_owned();
    for (flag, keyword) in SPELLINGS {
        message = message.replace(flag, keyword);
    }
    // `--column NAME:TYPE`.
    while let Some((before, rest)) = message.split_once("--column ") {
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | ')')).unwrap_or(rest.len());
        let (argument, after) = rest.split_at(end);
        let (name, kind) = argument.rsplit_once(':').unwrap_or((argument, "TYPE"));
        message = format!("{before}`columns={{\"{name}\": \"{kind}\"}}`{after}");
    }
    message
}

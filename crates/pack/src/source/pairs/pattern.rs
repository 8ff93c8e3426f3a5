//! Patterns of the names of files that belong to one sample.

use regex::Regex;
use std::collections::HashMap;

/// A pattern of paths: `*` matches any text without `/`, `**` any text, and `.*` at the end any extension. Files of two patterns belong
/// together where the same texts match `*` and `**`, in their order. What `{*}` and `{**}` match may differ between them.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    parts: Vec<Part>,
    /// `.*` at the end, or nothing.
    extension: &'static str,
    regex: Regex,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(String),
    /// The same in all files of a sample.
    Shared,
    /// Any text; holds what the pattern writes for it.
    Free(&'static str),
}

/// What a pattern writes for any text, and the expression that matches it.
const TEXTS: [(&str, bool, &str); 4] =
    [("{**}", false, "((?s:.)*?)"), ("{*}", false, "([^/]*?)"), ("**", true, "((?s:.)*?)"), ("*", true, "([^/]*?)")];
const ANY_EXTENSION: &str = ".*";

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let names = text.strip_suffix(ANY_EXTENSION).unwrap_or(text);
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(format!("`{text}` leads out of the source: name the folder above as the source"));
        }
        let (mut parts, mut regex, mut rest) = (vec![], String::from("^"), names);
        while let Some(first) = rest.chars().next() {
            let Some((token, shared, any)) = TEXTS.iter().find(|(token, ..)| rest.starts_with(token)) else {
                regex += &regex::escape(&rest[..first.len_utf8()]);
                match parts.last_mut() {
                    Some(Part::Literal(literal)) => literal.push(first),
                    _ => parts.push(Part::Literal(first.to_string())),
                }
                rest = &rest[first.len_utf8()..];
                continue;
            };
            regex += any;
            parts.push(if *shared { Part::Shared } else { Part::Free(token) });
            rest = &rest[token.len()..];
        }
        if !parts.iter().any(|part| matches!(part, Part::Shared)) {
            return Err(format!(
                "`{text}` has no * for the part of the name that the files of a sample share, such as images/**.jpg and masks/**.png"
            ));
        }
        let extension = if names == text { "" } else { ANY_EXTENSION };
        if !extension.is_empty() {
            regex += r"\.[^./]*";
        }
        let regex = Regex::new(&(regex + "$")).map_err(|error| error.to_string())?;
        Ok(Pattern { text: text.to_owned(), parts, extension, regex })
    }

    /// Returns the texts that match `*` and `**` in a path; `None` if the path does not match.
    pub(super) fn texts(&self, path: &str) -> Option<Vec<String>> {
        let found = self.regex.captures(path)?;
        let texts = self.parts.iter().filter(|part| !matches!(part, Part::Literal(_)));
        let shared = texts.zip(found.iter().skip(1).flatten()).filter(|(part, _)| matches!(part, Part::Shared));
        Some(shared.map(|(_, text)| text.as_str().to_owned()).collect())
    }

    /// Returns the number of `*` and `**`.
    pub(super) fn texts_len(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Shared)).count()
    }

    /// Returns whether a part of the path may be any text, `{*}` or `{**}`.
    pub(super) fn is_free(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Free(_)))
    }

    /// Returns the path with these texts; `{*}`, `{**}` and `.*` stay as they are.
    pub(super) fn path(&self, texts: &[String]) -> String {
        let mut texts = texts.iter().map(String::as_str);
        let parts = self.parts.iter().map(|part| match part {
            Part::Literal(literal) => literal.as_str(),
            Part::Shared => texts.next().unwrap_or_default(),
            Part::Free(token) => token,
        });
        parts.chain([self.extension]).collect()
    }

    /// Returns the files that match, by [`Pattern::path`] of their texts: however a name could be divided into texts otherwise, it is the same
    /// one.
    pub(super) fn by_path<'f>(&self, files: &'f [String]) -> HashMap<String, Vec<&'f String>> {
        let mut found = HashMap::<String, Vec<&String>>::new();
        for file in files {
            if let Some(texts) = self.texts(file) {
                found.entry(self.path(&texts)).or_default().push(file);
            }
        }
        found
    }

    /// Returns the number of folders that the pattern names before its first `*`.
    pub(super) fn folders(&self) -> usize {
        self.text.split('*').next().unwrap_or_default().matches('/').count()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_files_have_in_common() {
        let image = Pattern::new("leftImg8bit/**_leftImg8bit.png").unwrap();
        let mask = Pattern::new("gtFine/**_gtFine_labelIds.png").unwrap();
        let texts = image.texts("leftImg8bit/train/aachen/a_01_leftImg8bit.png").unwrap();
        assert_eq!(texts, ["train/aachen/a_01"]);
        assert_eq!(mask.path(&texts), "gtFine/train/aachen/a_01_gtFine_labelIds.png");
        assert_eq!(mask.texts(&mask.path(&texts)).unwrap(), texts);
        assert_eq!((image.folders(), image.texts_len()), (1, 1));
        let any = Pattern::new("*/images/**.*").unwrap();
        assert_eq!(any.texts("train/images/a/b.c.jpg").unwrap(), ["train", "a/b.c"]);
        assert_eq!(
            Pattern::new("*/masks/**.*").unwrap().path(&["train".to_owned(), "a/b".to_owned()]),
            "train/masks/a/b.*"
        );
        assert_eq!(any.texts("x/train/images/a.jpg"), None);
        assert_eq!(any.texts("train/images/a"), None);
        assert_eq!((any.folders(), any.texts_len()), (0, 2));
        let flat = Pattern::new("**_mask.png").unwrap();
        assert_eq!(flat.texts("a+(b)_mask.png").unwrap(), ["a+(b)"]);
        assert_eq!(Pattern::new("a.b/*.png").unwrap().texts("axb/c.png"), None);
    }

    #[test]
    fn texts_in_braces_may_differ() {
        let image = Pattern::new("{**}/*_drive_*_sync/image_*/data/*.*").unwrap();
        let depth = Pattern::new("{*}/*_drive_*_sync/proj_depth/groundtruth/image_*/*.png").unwrap();
        let texts = image.texts("raw/2011_09_26/2011_09_26_drive_0001_sync/image_02/data/0000000005.png").unwrap();
        assert_eq!(texts, ["2011_09_26", "0001", "02", "0000000005"]);
        let file = "train/2011_09_26_drive_0001_sync/proj_depth/groundtruth/image_02/0000000005.png".to_owned();
        assert_eq!(depth.texts(&file).unwrap(), texts);
        let files = [file];
        assert_eq!(depth.by_path(&files)[&depth.path(&texts)], [&files[0]]);
        assert_eq!(depth.texts(&format!("a/{}", files[0])), None);
        assert!(image.is_free() && depth.is_free() && !Pattern::new("{a}/*.png").unwrap().is_free());
        assert_eq!(Pattern::new("{a}/*.png").unwrap().texts("{a}/b.png").unwrap(), ["b"]);
    }

    #[test]
    fn what_cannot_be_a_pattern_is_refused() {
        for wrong in ["images/a.jpg", "images/a.*", "/images/*.jpg", "../images/*.jpg", "", "{*}.png", "{**}/a.*"] {
            assert!(Pattern::new(wrong).is_err(), "{wrong}");
        }
    }
}

//! Patterns of the names of files that belong to one sample.

use regex::Regex;

/// A pattern of paths: `*` matches any text without `/`, `**` for any text, and `.*` at the end for any extension. Files of two
/// patterns belong together where the same texts match `*` and `**`, in their order.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let names = text.strip_suffix(".*").unwrap_or(text);
        if !names.contains('*') {
            return Err(format!(
                "`{text}` has no * for the part of the name that the files of a sample share, such as images/**.jpg and masks/**.png"
            ));
        }
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(format!("`{text}` leads out of the source: name the folder above as the source"));
        }
        let mut regex = String::from("^");
        for (number, literal) in names.split("**").enumerate() {
            if number > 0 {
                regex += "((?s:.)*?)";
            }
            let literals: Vec<_> = literal.split('*').map(regex::escape).collect();
            regex += &literals.join("([^/]*?)");
        }
        if names != text {
            regex += r"\.[^./]*";
        }
        let regex = Regex::new(&(regex + "$")).map_err(|error| error.to_string())?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    /// Returns the texts that match `*` and `**` in a path; `None` if the path does not match.
    pub(super) fn texts(&self, path: &str) -> Option<Vec<String>> {
        let found = self.regex.captures(path)?;
        Some(found.iter().skip(1).flatten().map(|text| text.as_str().to_owned()).collect())
    }

    /// Returns the number of `*` and `**`.
    pub(super) fn texts_len(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// Returns the path with these texts; of any extension, with `.*`.
    pub(super) fn path(&self, texts: &[String]) -> String {
        let (names, extension) = self.text.strip_suffix(".*").map_or((&*self.text, ""), |names| (names, ".*"));
        let (mut texts, mut path) = (texts.iter(), String::new());
        for (number, literal) in names.split("**").enumerate() {
            if number > 0 {
                path += texts.next().map_or("", String::as_str);
            }
            for (number, literal) in literal.split('*').enumerate() {
                if number > 0 {
                    path += texts.next().map_or("", String::as_str);
                }
                path += literal;
            }
        }
        path + extension
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
    fn what_cannot_be_a_pattern_is_refused() {
        for wrong in ["images/a.jpg", "images/a.*", "/images/*.jpg", "../images/*.jpg", ""] {
            assert!(Pattern::new(wrong).is_err(), "{wrong}");
        }
    }
}

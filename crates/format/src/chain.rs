//! An error and its sources as one line of text.

use crate::printable;
use std::error::Error;
use std::fmt::{Display, Formatter, Result};

/// Displays an error and its chain of sources, joined by `: `, outermost first.
///
/// The errors of this workspace follow the convention that `Display` is one link of the chain: a variant with a source
/// does not print it. Errors of other crates may print their source as well; a link is left out if the text of the
/// previous one already ends with it.
///
/// Errors quote names and keys from files, so control characters are replaced ([`printable()`](printable)).
///
/// ```
/// # use shardtool_format::Chain;
/// #[derive(Debug, thiserror::Error)]
/// #[error("cannot open {path}")]
/// struct Open {
///     path: &'static str,
///     source: std::io::Error,
/// }
/// let error = Open { path: "dataset.json", source: std::io::Error::other("permission denied") };
/// assert_eq!(Chain(&error).to_string(), "cannot open dataset.json: permission denied");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'a));

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut last = self.0.to_string();
        f.write_str(&printable(&last))?;
        let mut next = self.0.source();
        while let Some(error) = next {
            let link = error.to_string();
            if !last.ends_with(&link) {
                write!(f, ": {}", printable(&link))?;
                last = link;
            }
            next = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Link(&'static str, Option<Box<Link>>);

    impl Display for Link {
        fn fmt(&self, f: &mut Formatter<'_>) -> Result {
            f.write_str(self.0)
        }
    }

    impl Error for Link {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|link| link as _)
        }
    }

    fn chain(links: &[&'static str]) -> Link {
        let inner = links[1..].iter().rev().fold(None, |inner, text| Some(Box::new(Link(text, inner))));
        Link(links[0], inner)
    }

    #[test]
    fn joins_every_link_with_a_colon() {
        assert_eq!(Chain(&chain(&["alone"])).to_string(), "alone");
        assert_eq!(Chain(&chain(&["open a", "read b", "no such file"])).to_string(), "open a: read b: no such file");
    }

    #[test]
    fn replaces_control_characters_of_every_link() {
        let error = chain(&["open \x1b[2Ja\nb", "no \u{9b}2J \x7f"]);
        assert_eq!(Chain(&error).to_string(), "open \u{fffd}[2Ja\u{fffd}b: no \u{fffd}2J \u{fffd}");
    }

    #[test]
    fn leaves_out_a_link_that_the_previous_one_ends_with() {
        let printed_twice = chain(&["open a: read b: no such file", "read b: no such file", "no such file"]);
        assert_eq!(Chain(&printed_twice).to_string(), "open a: read b: no such file");
        let kept = chain(&["no such file in a", "no such file"]);
        assert_eq!(Chain(&kept).to_string(), "no such file in a: no such file");
    }
}

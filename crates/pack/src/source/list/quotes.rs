//! Checks the quotes of a CSV file while it is read: the parser takes what follows an open quote, up to the end of the file, for one value.

use std::io::{Error, ErrorKind, Read, Result};

/// A reader of CSV that fails at a quote that is not closed, at text behind a closing one, and at spaces before an opening one (RFC 4180,
/// section 2).
pub(super) struct Quotes<R> {
    inner: R,
    at: At,
    line: u64,
}

#[derive(Debug, Clone, Copy)]
enum At {
    /// The begin of a value, and whether spaces precede.
    Begin { spaces: bool },
    /// In a value without quotes.
    Plain,
    /// In a value that a quote in this line opened.
    Quoted(u64),
    /// Behind a quote inside such a value: it is the end, or the first one of two.
    Closing(u64),
}

impl<R: Read> Quotes<R> {
    pub(super) fn new(inner: R) -> Self {
        Quotes { inner, at: At::Begin { spaces: false }, line: 1 }
    }

    fn add(&mut self, byte: u8) -> Result<()> {
        let line = self.line;
        self.line += u64::from(byte == b'\n');
        self.at = match (self.at, byte) {
            (At::Begin { spaces: false }, b'"') => At::Quoted(line),
            (At::Quoted(open), b'"') => At::Closing(open),
            (At::Quoted(open), _) => At::Quoted(open),
            (At::Closing(open), b'"') => At::Quoted(open),
            (_, b',' | b'\n' | b'\r') => At::Begin { spaces: false },
            (At::Closing(_), _) => {
                return Err(wrong(format!(
                    "line {line}: text, or a space, behind the quote that closes a value; a quote inside of a value is written twice (\"\"), not \\\""
                )));
            }
            (At::Begin { .. }, b' ') => At::Begin { spaces: true },
            (At::Begin { spaces: true }, b'"') => {
                return Err(wrong(format!(
                    "line {line}: spaces before a quote make it a part of the value; remove them"
                )));
            }
            (At::Begin { .. } | At::Plain, _) => At::Plain,
        };
        Ok(())
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.inner.read(buffer)?;
        if let (0, At::Quoted(line), false) = (read, self.at, buffer.is_empty()) {
            return Err(wrong(format!("line {line}: a quote opens a value, and no quote closes it")));
        }
        buffer[..read].iter().try_for_each(|byte| self.add(*byte))?;
        Ok(read)
    }
}

fn wrong(problem: String) -> Error {
    Error::new(ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<String, String> {
        let mut all = String::new();
        Quotes::new(text.as_bytes()).read_to_string(&mut all).map(|_| all).map_err(|error| error.to_string())
    }

    #[test]
    fn quotes_that_are_closed_pass() {
        for text in [
            "a,b\n\"x\",\"y\"\n",
            "\"a \"\"b\"\"\",\"\"\n",
            "\"two\nlines\",b",
            "5\" screen,b\n",
            " a, b\r\n\"c\"\r\n",
            "",
        ] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn other_quotes_are_refused_with_their_line() {
        for (text, line) in [
            ("a\nb,\"c\nd\ne\n", "line 2"),
            ("a\n\"b\"c\n", "line 2"),
            ("a, \"b\"\n", "line 1"),
            ("\"a\n\"b\n", "line 2"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(line), "{text:?}: {error}");
        }
    }
}

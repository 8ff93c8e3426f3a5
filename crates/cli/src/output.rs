//! Standard output and standard error. Nothing else in this crate writes to them (`clippy.toml`), so that two rules hold
//! for every command:
//!
//! - Text from files does not control the terminal: control characters are replaced in text and escaped in JSON.
//! - A reader that closes the pipe early does not change the exit status: the remaining output is dropped.

use log::{LevelFilter, Log, Metadata, Record};
use serde::Serialize;
use serde_json::Value;
use shardtool_format::printable;
use std::fmt::{Display, Write as _};
use std::io::{BufWriter, ErrorKind, IsTerminal, Result, Write};

/// Returns a number as JSON: NaN and infinities, which JSON lacks, as texts, as in the JSON of protobuf.
pub(crate) fn json_number<T: Into<f64> + Into<Value> + Copy>(number: T) -> Value {
    let value: f64 = number.into();
    match value {
        _ if value.is_nan() => Value::from("NaN"),
        f64::INFINITY => Value::from("Infinity"),
        f64::NEG_INFINITY => Value::from("-Infinity"),
        _ => number.into(),
    }
}

/// Standard output of one command. As [`Write`] it takes text.
pub(crate) struct Output {
    inner: BufWriter<Box<dyn Write>>,
    /// Whether each line is shown when it is complete.
    by_line: bool,
    /// Whether the reader closed the pipe.
    closed: bool,
}

impl Output {
    /// Returns the standard output of this process.
    #[expect(clippy::disallowed_methods, reason = "the only place that writes to standard output")]
    pub(crate) fn stdout() -> Self {
        let stdout = std::io::stdout();
        let by_line = stdout.is_terminal();
        Output { inner: BufWriter::new(Box::new(stdout)), by_line, closed: false }
    }

    /// Returns whether the output is read by a person in a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.by_line
    }

    /// Returns whether the reader closed the pipe: a command whose only purpose is its output may then end.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes an indented JSON document and a newline. A document that serialises its items one by one is written
    /// without being held in memory; if the reader closes the pipe, serialising ends.
    ///
    /// # Errors
    /// Errors of writing other than a closed pipe, and those of the document itself.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> anyhow::Result<()> {
        match serde_json::to_writer_pretty(Json(self), document) {
            Err(_) if self.closed => return Ok(()),
            result => result?,
        }
        Ok(writeln!(self)?)
    }

    /// Passes bytes on, or drops them if the reader has closed the pipe.
    fn pass(&mut self, bytes: &[u8]) -> Result<()> {
        let result = match self.inner.write_all(bytes) {
            Ok(()) if self.by_line && bytes.contains(&b'\n') => self.inner.flush(),
            result => result,
        };
        self.note_closed(result)
    }

    fn note_closed(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if !self.closed {
            let text = String::from_utf8_lossy(bytes);
            let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            if text.contains(forbidden) {
                self.pass(text.replace(forbidden, "\u{fffd}").as_bytes())?;
            } else {
                self.pass(text.as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let result = self.inner.flush();
        self.note_closed(result)
    }
}

/// Writes JSON. `serde_json` escapes the control characters of ASCII up to U+001F; DEL and C1 occur only inside strings and
/// are escaped here. Fails if the reader has closed the pipe, so that serialising ends.
struct Json<'a>(&'a mut Output);

impl Write for Json<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let escaped = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
        if text.contains(escaped) {
            let mut out = String::with_capacity(text.len());
            for c in text.chars() {
                match escaped(c) {
                    true => write!(out, "\\u{:04x}", u32::from(c)).expect("into a String"),
                    false => out.push(c),
                }
            }
            self.0.pass(out.as_bytes())?;
        } else {
            self.0.pass(text.as_bytes())?;
        }
        if self.0.closed { Err(ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

/// Prints one line on standard error. Ignores errors of writing.
#[expect(clippy::disallowed_methods, reason = "the only place that writes to standard error")]
pub(crate) fn message(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", printable(&text.to_string()));
}

/// Prints warnings of the crate `store` from now on: they concern whole commands, not one result. What a loader reports,
/// its command prints.
pub(crate) fn print_warnings() {
    // An error says that a program which calls this library has a logger, which then gets them.
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("shardtool_store")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            message(format_args!("warning: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

    /// Keeps what is written; fails after `left` bytes as a pipe whose reader is gone.
    #[derive(Clone)]
    struct Pipe(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            let mut pipe = self.0.lock().unwrap();
            if bytes.len() > pipe.1 {
                return Err(ErrorKind::BrokenPipe.into());
            }
            pipe.1 -= bytes.len();
            pipe.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn output(left: usize) -> (Output, Pipe) {
        let pipe = Pipe(Arc::new(Mutex::new((vec![], left))));
        (Output { inner: BufWriter::new(Box::new(pipe.clone())), by_line: true, closed: false }, pipe)
    }

    const HOSTILE: &str = "a\x1b[2J\u{9b}2J\x7f\0b";

    #[test]
    fn text_holds_no_control_character_but_newlines_and_tabs() {
        let (mut out, pipe) = output(usize::MAX);
        writeln!(out, "x\t{HOSTILE}").unwrap();
        let written = String::from_utf8(pipe.0.lock().unwrap().0.clone()).unwrap();
        assert_eq!(written, "x\ta\u{fffd}[2J\u{fffd}2J\u{fffd}\u{fffd}b\n");
    }

    #[test]
    fn json_is_the_same_document_without_raw_control_characters() {
        let (mut out, pipe) = output(usize::MAX);
        let document = json!({ HOSTILE: [HOSTILE, 1, {"x": null}] });
        out.json(&document).unwrap();
        let written = String::from_utf8(pipe.0.lock().unwrap().0.clone()).unwrap();
        assert!(written.chars().all(|c| c == '\n' || !c.is_control()), "{written:?}");
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), document);
    }

    #[test]
    fn a_closed_pipe_drops_the_output_and_is_no_error() {
        let (mut out, _) = output(10);
        writeln!(out, "12345").unwrap();
        assert!(!out.is_closed());
        writeln!(out, "1234567890").unwrap();
        assert!(out.is_closed());
        writeln!(out, "more").and_then(|()| out.flush()).unwrap();
        out.json(&json!([1, 2, 3])).unwrap();
    }

    #[test]
    fn other_errors_of_writing_are_errors() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> Result<usize> {
                Err(ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> Result<()> {
                Ok(())
            }
        }
        let mut out = Output { inner: BufWriter::new(Box::new(Full)), by_line: true, closed: false };
        assert_eq!(writeln!(out, "x").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}

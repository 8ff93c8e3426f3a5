//! Isolation of decoders that are not written here: a panic inside one is an error of that image.
//!
//! Catching needs `panic = "unwind"`, the default of every profile of this workspace. The panic hook is left alone, so that
//! a program that embeds this crate sees what it always sees; [`silence_decoder_panics`] is for programs that report errors
//! themselves.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::error::Error;
use crate::format::Format;

thread_local! {
    /// Whether this thread runs a foreign decoder.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a foreign decoder. A panic inside it becomes [`Error::Panic`]; the caller must then discard every buffer that the
/// decoder wrote to.
pub(crate) fn isolate<T>(format: Format, decoder: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let outer = INSIDE.replace(true);
    // The closure borrows buffers only, and the caller discards them after a panic, so nothing half-written is seen.
    let result = catch_unwind(AssertUnwindSafe(decoder));
    INSIDE.set(outer);
    result.unwrap_or_else(|payload| Err(Error::Panic { format, message: message(&*payload) }))
}

/// Installs a panic hook that prints nothing for a panic inside a foreign decoder, which [`Error::Panic`] reports, and calls
/// the previous hook for any other. Further calls do nothing. For programs, not for libraries: the hook is the process's.
pub fn silence_decoder_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                previous(info);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        type Fails = fn() -> Result<(), Error>;
        let cases: [(Fails, &str); 3] = [
            (|| panic!("index {} is out of range", 7), "index 7 is out of range"),
            (|| panic!("fixed text"), "fixed text"),
            (|| std::panic::panic_any(7), "no message"),
        ];
        for (fails, expected) in cases {
            let result = isolate(Format::Tiff, fails);
            assert!(matches!(&result, Err(Error::Panic { format: Format::Tiff, message }) if message == expected));
            assert!(!INSIDE.get());
        }
        assert_eq!(isolate(Format::Tiff, || Ok(3)).unwrap(), 3);
    }
}

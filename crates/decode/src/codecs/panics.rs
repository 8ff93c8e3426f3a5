//! Turns a panic inside a decoder of another crate into an error of that image.
//!
//! This needs `panic = "unwind"`, the default. The panic hook is not changed, so the panic's message is printed as usual;
//! programs that report errors themselves call [`silence_decoder_panics`].

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::error::Error;
use crate::format::Format;

thread_local! {
    /// Whether this thread runs a decoder of another crate.
    static IN_DECODER: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder of another crate and converts a panic to [`Error::Panic`]. The caller must then discard every buffer that
/// the decoder wrote to.
pub(crate) fn catch_panic<T>(format: Format, decoder: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_library_panic(decoder).unwrap_or_else(|message| Err(Error::Panic { format, message }))
}

/// Runs code of another crate, and returns the message of a panic as an error. The caller must then discard everything that
/// the code wrote to. [`silence_decoder_panics`] applies.
///
/// # Errors
/// The panic's message.
pub fn catch_library_panic<T>(library: impl FnOnce() -> T) -> Result<T, String> {
    let outer = IN_DECODER.replace(true);
    // Unwind safe: the closure writes only to what the caller discards after a panic.
    let result = catch_unwind(AssertUnwindSafe(library));
    IN_DECODER.set(outer);
    result.map_err(|payload| message(&*payload))
}

/// Installs a panic hook that prints nothing for panics inside decoders, which are reported as [`Error::Panic`], and calls
/// the previous hook for all others. Further calls do nothing. The hook is global, so only programs should call this.
pub fn silence_decoder_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !IN_DECODER.get() {
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
    fn converts_panic_to_error_with_its_message() {
        type Fails = fn() -> Result<(), Error>;
        let cases: [(Fails, &str); 3] = [
            (|| panic!("index {} is out of range", 7), "index 7 is out of range"),
            (|| panic!("fixed text"), "fixed text"),
            (|| std::panic::panic_any(7), "no message"),
        ];
        for (fails, expected) in cases {
            let result = catch_panic(Format::Tiff, fails);
            assert!(matches!(&result, Err(Error::Panic { format: Format::Tiff, message }) if message == expected));
            assert!(!IN_DECODER.get());
        }
        assert_eq!(catch_panic(Format::Tiff, || Ok(3)).unwrap(), 3);
    }
}

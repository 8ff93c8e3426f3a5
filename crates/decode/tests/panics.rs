//! A panic inside a decoder of another crate is an error of that image. Its memory is discarded, so later images decode.

#[path = "made/panicking_tiff.rs"]
mod panicking_tiff;

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};

use panicking_tiff::panicking_tiff;
use shardtool_decode::{
    DecodeOptions, Decoder, Error, Format, LabelDtype, LabelMap, Limits, Orientation, Pipeline, Pixels, PixelsRef,
    Random, RegionOptions, catch_library_panic, decode, encode_jpeg, probe, silence_decoder_panics,
};

struct Middle;

impl Random for Middle {
    fn unit(&mut self) -> f64 {
        0.5
    }

    fn below(&mut self, n: u64) -> u64 {
        n / 2
    }
}

static PRINTED: AtomicUsize = AtomicUsize::new(0);

fn is_panic<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(error @ Error::Panic { format: Format::Tiff, .. }) => {
            let text = error.to_string();
            assert!(text.starts_with("the tiff decoder panicked: assertion failed"), "{text}");
        }
        other => panic!("expected a decoder's panic, found {other:?}"),
    }
}

/// One test, because the panic hook is global.
#[test]
fn panic_is_an_error_of_one_image_and_can_be_silenced() {
    let tiff = panicking_tiff();
    let size = (40, 20);
    let geometry =
        Pipeline::eval(16, 16).unwrap().plan(size, Orientation::default(), &mut Middle, &[]).unwrap().geometry();
    let good = encode_jpeg(PixelsRef::new(40, 20, &[90; 2400]).unwrap(), 90).unwrap();
    set_hook(Box::new(|_| {
        PRINTED.fetch_add(1, Ordering::SeqCst);
    }));

    assert_eq!(probe(&tiff, &Limits::default()).unwrap().width, 40);
    let mut decoder = Decoder::default();
    let expected = decode(&good, &DecodeOptions::default()).unwrap();
    let mut pixels = Pixels::default();
    for _ in 0..3 {
        is_panic(decoder.decode_into(&tiff, &DecodeOptions::default(), &mut pixels));
        assert_eq!(pixels, Pixels::default(), "what the decoder wrote is discarded");
        is_panic(decoder.decode_region(&tiff, None, &geometry, &RegionOptions::default()));
        assert_eq!(decoder.held_bytes(), 0);
        decoder.decode_into(&good, &DecodeOptions::default(), &mut pixels).unwrap();
        assert_eq!(pixels, expected, "the next image is not affected");
        decoder.shrink_to(0);
    }
    assert!(LabelMap::default().decode(&tiff, LabelDtype::U8, &Limits::default()).is_err());
    assert_eq!(PRINTED.swap(0, Ordering::SeqCst), 6, "the library does not change the hook");

    silence_decoder_panics();
    silence_decoder_panics();
    is_panic(decode(&tiff, &DecodeOptions::default()));
    assert_eq!(catch_library_panic(|| panic!("a library")), Err::<(), _>("a library".to_owned()));
    assert_eq!(PRINTED.load(Ordering::SeqCst), 0, "a program's hook is silent inside a decoder");
    assert!(catch_unwind(|| panic!("elsewhere")).is_err());
    assert_eq!(PRINTED.load(Ordering::SeqCst), 1, "and prints every other panic, once");
    drop(take_hook());
}

#[test]
fn checks_limits_before_the_decoder_runs() {
    let limits = Limits::default().with_max_pixels(799);
    let error = decode(&panicking_tiff(), &DecodeOptions::default().with_limits(limits)).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

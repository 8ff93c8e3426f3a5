//! The decoders compared. Each decodes to 8-bit RGB, in memory that it reuses where its interface allows that.

use std::io::Cursor;

use shardtool_decode::{
    DecodeOptions, Decoder, Filter, Limits, Orientation, Pipeline, PixelFormat, Pixels, Random, RegionOptions,
    Transform, probe,
};
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Decoded pixels.
#[derive(Default)]
pub struct Image {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

/// A decoder.
pub trait Candidate {
    /// Decodes `bytes` to 8-bit RGB.
    fn decode(&mut self, bytes: &[u8], image: &mut Image);
}

impl<F: FnMut(&[u8], &mut Image)> Candidate for F {
    fn decode(&mut self, bytes: &[u8], image: &mut Image) {
        self(bytes, image);
    }
}

/// Makes the candidate of a name.
pub fn new(name: &str) -> Box<dyn Candidate> {
    match name {
        "ours" => {
            let mut decoder = Decoder::default();
            Box::new(move |bytes: &[u8], image: &mut Image| {
                let mut pixels = Pixels { width: 0, height: 0, data: std::mem::take(&mut image.rgb) };
                decoder.decode_into(bytes, &DecodeOptions::default(), &mut pixels).expect("a good image");
                *image = Image { width: pixels.width, height: pixels.height, rgb: pixels.data };
            })
        }
        // 0.3 of the area, at the centre.
        "ours,crop" => {
            let (scale, ratio, interpolation) = ([0.3; 2], [1.0; 2], Filter::Bilinear);
            part(Transform::RandomResizedCrop { size: [224; 2], scale, ratio, interpolation }, None, PixelFormat::RGB8)
        }
        "ours,grey" => part(resize(224), None, PixelFormat::GRAY8),
        // An eighth of the size, for most photographs.
        "ours,reduced" => part(resize(32), Some(1.0), PixelFormat::RGB8),
        "zune-jpeg" => Box::new(zune_jpeg),
        "zune-png" => Box::new(zune_png),
        "png" => Box::new(png),
        "image-webp" => Box::new(image_webp),
        "rusty_webp" => Box::new(rusty_webp),
        "libwebp" => Box::new(libwebp),
        _ => panic!("no candidate {name}"),
    }
}

fn resize(side: u32) -> Transform {
    Transform::ResizeTo { size: [side; 2], interpolation: Filter::Bilinear }
}

/// The same number for each draw.
struct Fixed(f64);

impl Random for Fixed {
    fn unit(&mut self) -> f64 {
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.0 * n as f64) as u64
    }
}

/// Decodes what a transform needs of the image.
fn part(transform: Transform, gap: Option<f64>, format: PixelFormat) -> Box<dyn Candidate> {
    let pipeline = Pipeline::new(vec![transform]).expect("a pipeline");
    let options = RegionOptions::default().with_reducing_gap(gap).with_pixel_format(format);
    let mut decoder = Decoder::default();
    Box::new(move |bytes: &[u8], _: &mut Image| {
        let info = probe(bytes, &Limits::default()).expect("a header");
        let size = (info.width, info.height);
        let plan = pipeline.plan(size, Orientation::default(), &mut Fixed(0.5), &[]).expect("a pipeline for any image");
        let region = decoder.decode_region(bytes, None, &plan.geometry(), &options).expect("a good image");
        std::hint::black_box(region.pixels);
    })
}

fn zune_jpeg(bytes: &[u8], image: &mut Image) {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().expect("a JPEG");
    let (width, height) = decoder.dimensions().expect("a size");
    image.rgb.resize(decoder.output_buffer_size().expect("a size"), 0);
    decoder.decode_into(&mut image.rgb).expect("pixels");
    (image.width, image.height) = (width as u32, height as u32);
}

fn zune_png(bytes: &[u8], image: &mut Image) {
    let options = DecoderOptions::default().png_set_strip_to_8bit(true);
    let mut decoder = zune_png::PngDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().expect("a PNG");
    let (width, height) = decoder.dimensions().expect("a size");
    image.rgb.resize(decoder.output_buffer_size().expect("a size"), 0);
    decoder.decode_into(&mut image.rgb).expect("pixels");
    (image.width, image.height) = (width as u32, height as u32);
}

fn png(bytes: &[u8], image: &mut Image) {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().expect("a PNG");
    (image.width, image.height) = reader.info().size();
    image.rgb.resize(reader.output_buffer_size().expect("a size"), 0);
    reader.next_frame(&mut image.rgb).expect("pixels");
}

fn image_webp(bytes: &[u8], image: &mut Image) {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).expect("a WebP");
    assert!(!decoder.has_alpha(), "an image without alpha");
    (image.width, image.height) = decoder.dimensions();
    image.rgb.resize(decoder.output_buffer_size().expect("a size"), 0);
    decoder.read_image(&mut image.rgb).expect("pixels");
}

fn rusty_webp(bytes: &[u8], image: &mut Image) {
    let mut decoder = rusty_webp::WebPDecoder::new(Cursor::new(bytes)).expect("a WebP");
    assert!(!decoder.has_alpha(), "an image without alpha");
    (image.width, image.height) = decoder.dimensions();
    image.rgb.resize(decoder.output_buffer_size().expect("a size"), 0);
    decoder.read_image(&mut image.rgb).expect("pixels");
}

fn libwebp(bytes: &[u8], image: &mut Image) {
    let (mut width, mut height) = (0, 0);
    // SAFETY: the pointers are valid for the lengths given; a header is only read.
    let known = unsafe { libwebp_sys::WebPGetInfo(bytes.as_ptr(), bytes.len(), &mut width, &mut height) };
    assert!(known != 0, "a WebP");
    let stride = width as usize * 3;
    image.rgb.resize(stride * height as usize, 0);
    // SAFETY: the output has `height` rows of `stride` bytes.
    let decoded = unsafe {
        let out = image.rgb.as_mut_ptr();
        libwebp_sys::WebPDecodeRGBInto(bytes.as_ptr(), bytes.len(), out, image.rgb.len(), stride as i32)
    };
    assert!(!decoded.is_null(), "pixels");
    (image.width, image.height) = (width as u32, height as u32);
}

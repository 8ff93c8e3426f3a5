//! Does one part of a trainer's work on a JPEG a number of times, and prints a checksum of the result: what
//! `benches/instructions/run` counts the instructions of. Usage: `work JPEG PART TIMES`, where PART is `whole`, `crop`, `resize`
//! (with what is decoded once) or `normalise`.
#![forbid(unsafe_code)]

use shardtool_decode::{DecodeOptions, Dtype, Layout, Normalizer, Output, PixelsRef, decode, resize};
use shardtool_jpeg::{Decoder, Header, Rect, Request, Scale};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, part, times] = &arguments[..] else { panic!("work JPEG PART TIMES") };
    let jpeg = std::fs::read(path).expect("a file");
    let times: usize = times.parse().expect("a number of times");
    let mut out: Vec<u8> = Vec::new();
    match &part[..] {
        "whole" | "crop" => {
            let mut decoder = Decoder::new();
            let (width, height) = Header::parse(&jpeg, decoder.limits()).expect("a JPEG").size(Scale::Full);
            // A crop of a quarter of the pixels, not at the corner.
            let rect = Rect { x: width / 4, y: height / 4, width: width / 2, height: height / 2 };
            let rect = (part == "crop").then_some(rect);
            let (width, height) = rect.map_or((width, height), |rect| (rect.width, rect.height));
            let stride = 3 * width as usize;
            out.resize(stride * height as usize, 0);
            for _ in 0..times {
                let request = Request { rect, ..Request::default() };
                decoder.decode(&jpeg, None, &request, &mut out, stride).expect("pixels");
            }
        }
        "resize" => {
            let pixels = decode(&jpeg, &DecodeOptions::default()).expect("pixels");
            let source = PixelsRef::new(pixels.width, pixels.height, &pixels.data).expect("pixels");
            for _ in 0..times {
                out = resize(source, (224, 224)).expect("a size").data;
            }
        }
        "normalise" => {
            let pixels = decode(&jpeg, &DecodeOptions::default()).expect("pixels");
            let (mean, deviation) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
            let output = Output::new(Dtype::F32, Layout::Nchw, mean, deviation).expect("numbers");
            let normalizer = Normalizer::new(output);
            out.resize(4 * pixels.data.len(), 0);
            for _ in 0..times {
                normalizer.write(&pixels.data, &mut out);
            }
        }
        _ => panic!("whole, crop, resize or normalise"),
    }
    let sum = out.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    println!("{} bytes, {sum:016x}", out.len());
}

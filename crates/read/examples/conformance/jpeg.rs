//! JPEG entry points: finding them, and decoding crops with them.

use super::{hex, sum};
use serde_json::{Value, json};
use shardtool_jpeg::{Decoder, Rect, Request, Scale};
use std::path::Path;

/// Returns the entry points that a writer stores for a JPEG.
pub(crate) fn entries(path: &Path) -> Vec<Value> {
    let jpeg = std::fs::read(path).expect("a JPEG");
    vec![json!({"entries": hex(&shardtool_decode::entry_points(&jpeg))})]
}

/// Returns the pixels of crops.
pub(crate) fn rows(path: &Path) -> Vec<Value> {
    let mut decoder = Decoder::new();
    let text = std::fs::read_to_string(path).expect("a file of rows");
    let folder = path.parent().expect("a folder");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a line of JSON");
        let jpeg = std::fs::read(folder.join(row["jpeg"].as_str().expect("a path"))).expect("a JPEG");
        let entries = bytes(row["entries"].as_str().expect("hex digits"));
        let [x, y, width, height] = [0, 1, 2, 3].map(|i| row["crop"][i].as_u64().expect("a number") as u32);
        let request = Request { rect: Some(Rect { x, y, width, height }), scale: Scale::Full, ..Request::default() };
        let stride = width as usize * 3;
        let mut pixels = vec![0; stride * height as usize];
        let entries = (!entries.is_empty()).then_some(&entries[..]);
        match decoder.decode(&jpeg, entries, &request, &mut pixels, stride) {
            Ok(_) => json!({"pixels": sum(&pixels)}),
            Err(error) => json!({"error": error.to_string()}),
        }
    };
    text.lines().map(row).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

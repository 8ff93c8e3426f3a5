//! Prints for each request the CRC-32 of the decoded pixels, or the error. `tests/oracle.py` compares them with libjpeg-turbo.
//!
//! Reads lines `PATH DIVISOR X Y WIDTH HEIGHT MODE` from standard input; WIDTH 0 means the whole image; MODE is
//! `plain`, `portable`, `entries` (found first) or `transcoded` (first, if it can be), with `-fill` to decode damaged images as libjpeg does, then `-gray`
//! for grey pixels, and then `-hex`. Prints `WIDTH HEIGHT CRC32 PATH`, or `error MESSAGE`; with `-hex` the pixels instead of the CRC.
#![forbid(unsafe_code)]

use std::io::BufRead;

use shardtool_jpeg::{Channels, Decoder, Error, Header, Rect, Request, Scale, entries, transcode};

/// CRC-32 as in zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|i| (0..8).fold(i as u32, |c, _| (c >> 1) ^ (0xedb8_8320 * (c & 1))));
    !bytes.iter().fold(!0, |c, &b| (c >> 8) ^ table[((c ^ u32::from(b)) & 255) as usize])
}

fn answer(decoder: &mut Decoder, jpeg: &[u8], scale: Scale, rect: Option<Rect>, mode: &str) -> Result<String, Error> {
    let transcoded = match mode.starts_with("transcoded").then(|| transcode(jpeg, decoder)) {
        None | Some(Err(Error::Unsupported(_))) => None,
        Some(result) => Some(result?.jpeg),
    };
    let jpeg = transcoded.as_deref().unwrap_or(jpeg);
    let header = Header::parse(jpeg, decoder.limits())?;
    let (width, height) = rect.map_or(header.size(scale), |r| (r.width, r.height));
    let (mode, hex) = match mode.strip_suffix("-hex") {
        Some(mode) => (mode, true),
        None => (mode, false),
    };
    let (mode, channels) = match mode.strip_suffix("-gray") {
        Some(mode) => (mode, Channels::Gray),
        None => (mode, Channels::Rgb),
    };
    let (mode, fill) = match mode.strip_suffix("-fill") {
        Some(mode) => (mode, true),
        None => (mode, false),
    };
    let stride = width as usize * channels.count();
    let mut payload = Vec::new();
    if mode == "entries" {
        match entries::find(jpeg, entries::default_step(&header), decoder, &mut payload) {
            // A damaged image has none.
            Err(_) if fill => payload.clear(),
            result => drop(result?),
        }
    }
    let mut pixels = vec![0; stride * height as usize];
    let hints = (mode == "entries").then_some(&payload[..]);
    let outcome = decoder.decode(jpeg, hints, &Request { rect, scale, channels, fill }, &mut pixels, stride)?;
    let shown = match hex {
        true => pixels.iter().map(|byte| format!("{byte:02x}")).collect(),
        false => format!("{:08x}", crc32(&pixels)),
    };
    Ok(format!("{width} {height} {shown} {:?}", outcome.path))
}

fn main() {
    let (mut fast, mut portable) = (Decoder::new(), Decoder::new().with_simd(false));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("lines of text");
        let mut words = line.rsplitn(7, ' ');
        let mode = words.next().unwrap_or_default().to_owned();
        let mut numbers: Vec<u32> = words.by_ref().take(5).map(|w| w.parse().expect("a number")).collect();
        numbers.reverse();
        let [divisor, x, y, width, height] = numbers[..] else { panic!("PATH DIVISOR X Y WIDTH HEIGHT MODE") };
        let scale = Scale::ALL.into_iter().find(|s| s.divisor() == divisor).expect("1, 2, 4 or 8");
        let rect = (width > 0).then_some(Rect { x, y, width, height });
        let jpeg = std::fs::read(words.next().expect("a path")).expect("a file");
        let decoder = if mode.starts_with("portable") { &mut portable } else { &mut fast };
        match answer(decoder, &jpeg, scale, rect, &mode) {
            Ok(line) => println!("{line}"),
            Err(e) => println!("error {e}"),
        }
    }
}

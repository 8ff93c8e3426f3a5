//! The comparison.

use super::baseline::{Block, Coefficients};
use super::coded::{Buffers, Coded, CodedImage, Coder, Scheme};
use super::layout::{Layout, ZIGZAG};
use super::level::Level;
use shardtool_benches::photographs::{Photograph, files, photographs, random_resized_crop};
use shardtool_benches::{Candidate, Rate, compare_cpu};
use shardtool_jpeg::{Decoder, Rect, Request, Scale, transcode};
use std::cell::RefCell;
use std::path::Path;

/// Rows of MCUs that a crop can enter at: 128 pixels for 4:2:0.
const GROUP_ROWS: usize = 8;
/// What coefficients are multiplied by: any numbers, since products are taken modulo 2^16.
const QUANT: [Block; 2] = [[3; 64], [5; 64]];

const SCHEMES: [(Layout, Coder); 4] = [
    (Layout::Bands, Coder::Rans),
    (Layout::Plain, Coder::Rans),
    (Layout::Plain, Coder::Huffman),
    (Layout::Symbols, Coder::Rans),
];

/// An image of the study.
struct Sample {
    photograph: Photograph,
    coefficients: Coefficients,
}

pub(crate) fn run() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("FOLDER [ROUNDS] [IMAGES]");
    let mut number = |default| args.next().map_or(default, |number| number.parse().expect("a number"));
    let (rounds, most) = (number(5), number(usize::MAX));
    let level = Level::of_process();
    let samples = samples(Path::new(&folder), most);
    let count = samples.len();
    let jpeg_bytes: usize = samples.iter().map(|s| s.photograph.jpeg.len() + s.photograph.entries.len()).sum();
    println!("{count} images of {} bytes, with entry points; {level:?}", jpeg_bytes / count);

    let coefficients: Vec<Coefficients> = samples.iter().map(|s| s.coefficients.clone()).collect();
    let coded =
        |group_rows| SCHEMES.map(|(layout, coder)| Coded::new(Scheme { layout, coder, group_rows }, &coefficients));
    let (whole, grouped) = (coded(usize::MAX), coded(GROUP_ROWS));
    drop(coefficients);
    for ((scheme, whole), grouped) in SCHEMES.iter().zip(&whole).zip(&grouped) {
        let share = |coded: &Coded| coded.bytes() as f64 / jpeg_bytes as f64;
        println!(
            "  {:<18} {:.3} of the bytes, {:.3} with entries every {GROUP_ROWS} rows of MCUs, {} symbols an image",
            name(scheme),
            share(whole),
            share(grouped),
            whole.symbols() / count
        );
        check(whole, &samples, level);
        check(grouped, &samples, level);
    }
    measure(&samples, (&whole, &grouped), level, rounds);
}

fn name((layout, coder): &(Layout, Coder)) -> String {
    format!("{layout:?}, {coder:?}").to_lowercase()
}

fn samples(folder: &Path, most: usize) -> Vec<Sample> {
    let mut paths = files(folder);
    // Evenly spaced: neighbours are of one class.
    let step = paths.len().div_ceil(most.max(1)).max(1);
    paths = paths.into_iter().step_by(step).collect();
    let mut decoder = Decoder::new();
    let sample = |photograph: Photograph| {
        let transcoded = transcode(&photograph.jpeg, &mut decoder).expect("a good image");
        Sample { coefficients: Coefficients::parse(&transcoded.jpeg), photograph }
    };
    photographs(&paths, &random_resized_crop(224)).into_iter().map(sample).collect()
}

/// Checks that every coefficient comes back, at this level and by portable code.
fn check(coded: &Coded, samples: &[Sample], level: Level) {
    let mut buffers = Buffers::default();
    for (image, sample) in coded.images.iter().zip(samples) {
        for level in [level, Level::Portable] {
            let blocks = coded.decode(image, 0..usize::MAX, (level, true, &QUANT), &mut buffers);
            coded.decode_dc(image, (level, &QUANT), &mut buffers);
            // In groups, components alternate.
            let mut expected: Vec<Block> = sample.coefficients.in_groups(coded.group_rows()).collect();
            assert_eq!(expected.len(), blocks);
            for (at, (block, expected)) in buffers.blocks.iter().zip(&mut expected).enumerate() {
                assert_eq!(buffers.dc[at], expected[0], "the DC coefficient of block {at}");
                assert!(block == expected, "block {at} differs");
            }
        }
    }
}

impl Coefficients {
    /// Returns dequantised blocks in natural order, as groups hold them.
    fn in_groups(&self, rows: usize) -> impl Iterator<Item = Block> + '_ {
        (0..self.rows).step_by(rows.min(self.rows)).flat_map(move |first| {
            let last = first.saturating_add(rows).min(self.rows);
            self.planes.iter().enumerate().flat_map(move |(number, plane)| {
                let (row, quant) = (plane.down * plane.across, &QUANT[usize::from(number > 0)]);
                plane.blocks[first * row..last * row].iter().map(|block| {
                    let mut natural = [0; 64];
                    for (k, value) in block.iter().enumerate() {
                        let at = usize::from(ZIGZAG[k]);
                        natural[at] = value.wrapping_mul(quant[at]);
                    }
                    natural
                })
            })
        })
    }
}

fn measure(samples: &[Sample], (whole, grouped): (&[Coded; 4], &[Coded; 4]), level: Level, rounds: usize) {
    let (decoder, buffers) = (RefCell::new(Decoder::new()), RefCell::new(Buffers::default()));
    let (decoder, buffers) = (&decoder, &buffers);
    let count = samples.len() as f64;
    let jpeg = |scale: Scale, crops: bool| {
        let mut out = vec![];
        move || {
            for Sample { photograph: p, .. } in samples {
                let (width, height) = p.header.size(scale);
                let rect = if crops { scaled(p.crop, scale) } else { Rect { x: 0, y: 0, width, height } };
                let stride = rect.width as usize * 3;
                out.resize(out.len().max(stride * rect.height as usize), 0);
                let request = Request { rect: Some(rect), scale, ..Request::default() };
                let entries = crops.then_some(&p.entries[..]);
                decoder.borrow_mut().decode(&p.jpeg, entries, &request, &mut out, stride).expect("pixels");
            }
            count
        }
    };
    let each = |coded: &'_ Coded, run: &dyn Fn(&Coded, &CodedImage, &Photograph, &mut Buffers)| {
        let buffers = &mut *buffers.borrow_mut();
        coded.images.iter().zip(samples).for_each(|(image, sample)| run(coded, image, &sample.photograph, buffers));
        count
    };
    let all = 0..usize::MAX;
    let rows = |p: &Photograph| p.crop.y as usize..(p.crop.y + p.crop.height) as usize;
    let mut candidates = vec![
        Candidate::new("jpeg, whole", jpeg(Scale::Full, false)),
        Candidate::new("jpeg, crop", jpeg(Scale::Full, true)),
        Candidate::new("jpeg, 1/8", jpeg(Scale::Eighth, false)),
        Candidate::new("jpeg, crop at 1/8", jpeg(Scale::Eighth, true)),
    ];
    for (whole, grouped) in whole.iter().zip(grouped) {
        let (bytes, blocks, part, small) = (whole, whole, grouped, whole);
        let all = &all;
        candidates.push(Candidate::new("streams", move || {
            each(bytes, &|c, image, _, b| {
                c.decode(image, all.clone(), (level, false, &QUANT), b);
            })
        }));
        candidates.push(Candidate::new("blocks", move || {
            each(blocks, &|c, image, _, b| {
                c.decode(image, all.clone(), (level, true, &QUANT), b);
            })
        }));
        candidates.push(Candidate::new("crop", move || {
            each(part, &|c, image, p, b| {
                c.decode(image, rows(p), (level, true, &QUANT), b);
            })
        }));
        candidates
            .push(Candidate::new("1/8", move || each(small, &|c, image, _, b| c.decode_dc(image, (level, &QUANT), b))));
    }
    let rates = compare_cpu(rounds, &mut candidates);
    print(&rates);
}

/// Returns a rectangle in pixels of an image at a scale, rounded outwards.
fn scaled(rect: Rect, scale: Scale) -> Rect {
    let divisor = scale.divisor();
    let (x, y) = (rect.x / divisor, rect.y / divisor);
    let (right, bottom) = ((rect.x + rect.width).div_ceil(divisor), (rect.y + rect.height).div_ceil(divisor));
    Rect { x, y, width: right - x, height: bottom - y }
}

/// Prints microseconds an image. What decoding would take with another entropy decoder is that of the JPEG, less its decoding at 1/8,
/// which is the entropy decoder and little else, so that the estimate favours the other one.
fn print(rates: &[Rate]) {
    let micros = |rate: &Rate| 1e6 / rate.median;
    let [whole, crop, small, small_crop] = [0, 1, 2, 3].map(|at| micros(&rates[at]));
    println!("\nmicroseconds an image, one thread, median; estimated rate against the JPEG");
    println!("{:<20} {:>8} {:>8} {:>8} {:>8}  {:>6} {:>6}", "", "streams", "whole", "crop", "1/8", "whole", "crop");
    println!("{:<20} {:>8} {whole:>8.0} {crop:>8.0} {small:>8.0}", "jpeg, with pixels", "");
    println!("{:<20} {:>8} {small:>8.0} {small_crop:>8.0} {small:>8.0}", "jpeg, entropy", "");
    for (scheme, rates) in SCHEMES.iter().zip(rates[4..].chunks_exact(4)) {
        let [streams, blocks, part, eighth] = [0, 1, 2, 3].map(|at| micros(&rates[at]));
        println!(
            "{:<20} {streams:>8.0} {blocks:>8.0} {part:>8.0} {eighth:>8.0}  {:>6.2} {:>6.2}",
            name(scheme),
            whole / (whole - small + blocks),
            crop / (crop - small_crop + part)
        );
    }
}

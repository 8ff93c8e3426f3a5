//! Photographs for decoding benchmarks, with the same crop of each in every run.

use std::path::{Path, PathBuf};

use shardtool_decode::{Filter, Geometry, Limits, Orientation, Pipeline, Random, Transform, probe};
use shardtool_jpeg::{self as jpeg, Header, Rect, entries};
use shardtool_order::Rng;

/// A JPEG, its entry points at the default interval, and the geometry of its sample.
#[derive(Debug)]
pub struct Photograph {
    /// Bytes of the file.
    pub jpeg: Vec<u8>,
    /// Its header.
    pub header: Header,
    /// Its entry points; empty if it has none.
    pub entries: Vec<u8>,
    /// The crop and the size that it is resized to.
    pub geometry: Geometry,
    /// The crop.
    pub crop: Rect,
}

/// Returns all files in a folder and its subfolders, sorted by path.
///
/// # Panics
/// If the folder cannot be read.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Returns a pipeline of torchvision's `RandomResizedCrop` to squares of `side` pixels.
///
/// # Panics
/// If `side` is 0.
#[must_use]
pub fn random_resized_crop(side: u32) -> Pipeline {
    let crop = Transform::RandomResizedCrop {
        size: [side; 2],
        scale: [0.08, 1.0],
        ratio: [3.0 / 4.0, 4.0 / 3.0],
        interpolation: Filter::Bilinear,
    };
    Pipeline::new(vec![crop]).expect("a pipeline")
}

/// Reads the JPEGs among these files whose header our decoder accepts. Callers check how many these are.
///
/// # Panics
/// If a file cannot be read, or a JPEG is damaged.
#[must_use]
pub fn photographs(paths: &[PathBuf], pipeline: &Pipeline) -> Vec<Photograph> {
    let mut finder = jpeg::Decoder::new();
    let each = paths.iter().enumerate().filter_map(|(i, path)| {
        let bytes = std::fs::read(path).expect("a file");
        let header = Header::parse(&bytes, &jpeg::Limits::default()).ok()?;
        let mut found = Vec::new();
        entries::find(&bytes, entries::default_step(&header), &mut finder, &mut found).expect("a good image");
        let info = probe(&bytes, &Limits::default()).expect("a header");
        let mut draw = Draw(Rng::augment(1, 0, i as u64));
        let size = (info.width, info.height);
        let geometry =
            pipeline.plan(size, Orientation::default(), &mut draw, &[]).expect("a pipeline for any image").geometry();
        let view = geometry.needed();
        let crop = Rect { x: view.left, y: view.top, width: view.width, height: view.height };
        Some(Photograph { jpeg: bytes, header, entries: found, geometry, crop })
    });
    each.collect()
}

/// Random numbers for transforms from the generator of the order.
#[derive(Debug)]
pub struct Draw(pub Rng);

impl Random for Draw {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.below(n as u32))
    }
}

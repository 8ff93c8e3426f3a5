//! A dataset of two classes, dark and light.

use shardtool::image::{PixelsRef, encode_jpeg};
use shardtool::{PackOptions, pack};
use std::path::Path;

pub(crate) const SAMPLES: usize = 75;

/// Makes the dataset below a folder, and returns its path.
pub(crate) fn dataset(folder: &Path) -> String {
    let photos = folder.join("photos");
    for number in 0..SAMPLES {
        let (class, value) = if number % 2 == 0 { ("dark", 20) } else { ("light", 180) };
        let data: Vec<u8> = (0..96 * 80 * 3).map(|at| value + (at * (number + 3) % 60) as u8).collect();
        std::fs::create_dir_all(photos.join(class)).unwrap();
        let jpeg = encode_jpeg(PixelsRef::new(96, 80, &data).unwrap(), 90).unwrap();
        std::fs::write(photos.join(class).join(format!("{number}.jpg")), jpeg).unwrap();
    }
    let path = folder.join("dataset");
    pack(&PackOptions::new(photos, &path)).unwrap();
    path.display().to_string()
}

//! Images that tests of commands pack, and the command.

use shardtool_decode::{PixelsRef, encode_jpeg};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the command in a folder.
pub(crate) fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// Returns a JPEG with a pattern that depends on `seed`.
fn jpeg((width, height): (u32, u32), seed: u32) -> Vec<u8> {
    let pixel = |i: u32| {
        let (x, y) = (i % width, i / width);
        [x.wrapping_mul(seed + 3) ^ y, y.wrapping_mul(7) ^ seed, (x * y) >> 6].map(|value| (value & 0xff) as u8)
    };
    let data: Vec<u8> = (0..width * height).flat_map(pixel).collect();
    encode_jpeg(PixelsRef::new(width, height, &data).unwrap(), 80).unwrap()
}

/// Makes `folder/photos` of `classes` classes with `each` images.
pub(crate) fn photos(folder: &Path, classes: u32, each: u32, size: (u32, u32)) {
    let one = jpeg(size, 1);
    for class in 0..classes {
        let class_folder = folder.join(format!("photos/class{class:02}"));
        std::fs::create_dir_all(&class_folder).unwrap();
        for image in 0..each {
            std::fs::write(class_folder.join(format!("{image:03}.jpg")), &one).unwrap();
        }
    }
}

/// Makes `folder/NAME.csv`, whose rows are `path` and the values of other columns, and the images that it names.
pub(crate) fn list(folder: &Path, name: &str, header: &str, rows: impl Iterator<Item = String>) {
    std::fs::create_dir_all(folder.join("images")).unwrap();
    let mut text = format!("path,{header}\n");
    for (number, row) in rows.enumerate() {
        let image = format!("images/{number:03}.jpg");
        std::fs::write(folder.join(&image), jpeg((32, 24), number as u32)).unwrap();
        text += &format!("{image},{row}\n");
    }
    std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
}

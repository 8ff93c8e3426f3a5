//! What a line of a list names: an image, and files that belong to it.

use super::super::layouts::listed;
use super::paired::{FilesOfImages, PairedFile};
use std::collections::HashMap;

/// The images of a source by all names that a line may have for them, and the files that belong to them.
pub(super) struct Names<'a> {
    paired: &'a FilesOfImages,
    images: HashMap<&'a str, Vec<&'a String>>,
    /// By their names without folders.
    files: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(paired: &'a FilesOfImages) -> Self {
        let (mut images, mut files) = (HashMap::<_, Vec<&String>>::new(), HashMap::<_, Vec<_>>::new());
        let mut sorted: Vec<_> = paired.iter().collect();
        sorted.sort_by_key(|(image, _)| *image);
        for (image, of_image) in sorted {
            let mut paths = vec![image.as_str()];
            // Also without the folders above it, from the first one on.
            paths.extend(image.match_indices('/').map(|(at, _)| &image[at + 1..]));
            for path in paths {
                let stem = path.rsplit_once('.').filter(|(_, end)| !end.contains('/')).map(|(stem, _)| stem);
                for name in [Some(path), stem].into_iter().flatten() {
                    let of_name = images.entry(name).or_default();
                    if !of_name.contains(&image) {
                        of_name.push(image);
                    }
                }
            }
            for file in of_image.iter().flat_map(PairedFile::existing) {
                files.entry(last(file)).or_default().push(file.as_str());
            }
        }
        Names { paired, images, files }
    }

    /// Returns the images that a line names: by a path or name, with or without extension; or by a folder, a number and the side of the camera, as
    /// lists for KITTI do.
    pub(super) fn images(&self, line: &str) -> &[&'a String] {
        let found = line.split_whitespace().next().and_then(|name| self.images.get(bare(name)));
        let found = found.or_else(|| self.images.get(&*drive(line)?));
        found.map(Vec::as_slice).unwrap_or_default()
    }

    /// Checks the files that a line names after its image. Returns what else follows.
    ///
    /// # Errors
    /// A file belongs to another image.
    pub(super) fn check<'l>(&self, image: &String, line: &'l str) -> Result<Option<&'l str>, String> {
        let of_drive = !self.images.contains_key(line.split_whitespace().next().map_or("", bare));
        let mut rest = None;
        for word in line.split_whitespace().skip(if of_drive { 3 } else { 1 }) {
            let named = self.files.get(last(word)).into_iter().flatten().filter(|file| ends_with(file, bare(word)));
            let named: Vec<_> = named.collect();
            if named.is_empty() {
                rest = rest.or(Some(word));
                continue;
            }
            let of_image: Vec<_> =
                self.paired[image].iter().flat_map(PairedFile::existing).map(String::as_str).collect();
            if !named.iter().any(|file| of_image.contains(file)) {
                let files = if of_image.is_empty() { "none".to_owned() } else { listed(of_image.into_iter()) };
                return Err(format!("{word} does not belong to {image}, whose files are {files}"));
            }
        }
        Ok(rest)
    }
}

/// Returns the name of an image of KITTI without extension, for a line such as `2011_09_26/2011_09_26_drive_0001_sync 10 l`.
fn drive(line: &str) -> Option<String> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [folder, number, side] = words[..] else { return None };
    let camera = match side {
        "l" | "2" => "image_02",
        "r" | "3" => "image_03",
        _ => return None,
    };
    Some(format!("{}/{camera}/data/{:010}", bare(folder), number.parse::<u64>().ok()?))
}

/// Returns a path without what only says that it begins here.
fn bare(path: &str) -> &str {
    path.trim_start_matches("./").trim_start_matches('/')
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

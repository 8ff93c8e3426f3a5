//! Decodes images with this project's decoder and with other crates, as `formats.py` requests. One request per line of
//! standard input:
//!
//! ```text
//! time NAME FOLDER      decodes each file of FOLDER once; answers with a line: CPU seconds of this thread
//! peak NAME FOLDER      answers with a line: the most bytes allocated for a file in addition to its pixels, and for how many
//!                       bytes of pixels; only Rust code is counted
//! pixels NAME FILE      answers with width, height (u32, little-endian) and the RGB pixels
//! ```
//!
//! Files are read once and kept.

mod allocator;
mod candidates;

use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;

use candidates::{Candidate, Image};

/// Returns the CPU time of this thread in seconds.
fn clock() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Returns the contents of all files in a folder, sorted by name.
fn read_folder(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}

fn main() {
    let mut folders: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    let mut candidates: HashMap<String, Box<dyn Candidate>> = HashMap::new();
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let parts: Vec<&str> = line.splitn(3, ' ').collect();
        let [request, name, path] = parts[..] else { panic!("expected REQUEST NAME PATH, found {line}") };
        let candidate = candidates.entry(name.to_owned()).or_insert_with(|| candidates::new(name));
        let mut image = Image::default();
        if request == "pixels" {
            candidate.decode(&std::fs::read(path).expect("a file"), &mut image);
            out.write_all(&image.width.to_le_bytes()).expect("a reader");
            out.write_all(&image.height.to_le_bytes()).expect("a reader");
            out.write_all(&image.rgb).expect("a reader");
            out.flush().expect("a reader");
            continue;
        }
        let files = folders.entry(path.to_owned()).or_insert_with(|| read_folder(Path::new(path)));
        match request {
            "time" => {
                let start = clock();
                files.iter().for_each(|bytes| candidate.decode(bytes, &mut image));
                writeln!(out, "{}", clock() - start).expect("a reader");
            }
            "peak" => {
                // A new candidate for each file, so that memory kept for the next one counts.
                let most = files.iter().map(|bytes| {
                    let mut image = Image::default();
                    let peak = allocator::peak(|| candidates::new(name).decode(bytes, &mut image));
                    (peak.saturating_sub(image.rgb.capacity()), image.rgb.len())
                });
                let (peak, pixels) = most.max().unwrap_or_default();
                writeln!(out, "{peak} {pixels}").expect("a reader");
            }
            _ => panic!("expected time, peak or pixels, found {request}"),
        }
        out.flush().expect("a reader");
    }
}

//! A panic of a decoder affects only its image: `pack` rejects it where it decodes, `verify` reports it, `extract`
//! copies it.

#[path = "../../../decode/tests/made/panicking_tiff.rs"]
mod panicking_tiff;

use crate::support::{check, class_folders, put, rejected, snapshot};
use panicking_tiff::panicking_tiff;
use shardtool_pack::{ExportKind, ExportOptions, Options, PixelStore, Resize, export, pack};
use shardtool_read::{Access, Dataset, verify};
use std::num::NonZeroUsize;
use std::path::PathBuf;

fn source() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 2);
    put(&source.join("cat/bad.tif"), &panicking_tiff());
    (temp, source, set)
}

#[test]
fn pack_rejects_an_image_whose_decoder_panics() {
    for pixels in [PixelStore::Raw, PixelStore::RawZstd { level: 1 }] {
        let (_temp, source, set) = source();
        let summary = pack(&with!(Options::new(&source, &set), pixels = pixels), &()).unwrap();
        assert_eq!(check(&set, "train").len(), 6);
        let found = rejected(&summary.rejected_file.unwrap());
        assert_eq!((found.len(), &*found[0].0), (1, "cat/bad.tif"));
        assert!(found[0].1.contains("the tiff decoder panicked"), "{found:?}");
    }
    let (_temp, source, set) = source();
    let resize = Some(Resize::Shorter(16));
    let summary = pack(&with!(Options::new(&source, &set), resize = resize), &()).unwrap();
    assert_eq!(summary.rejected, 1);
}

#[test]
fn verify_reports_it_and_extract_copies_it() {
    let (temp, source, set) = source();
    assert_eq!(pack(&Options::new(&source, &set), &()).unwrap().rejected, 0, "packing as is reads the header only");
    let dataset = Dataset::open(&set).unwrap();
    let mut options = verify::Options::default();
    (options.access, options.decode) = (Access::Pread, true);
    let report = verify::verify(&dataset, &options);
    assert_eq!((report.good_records, report.findings.len()), (7, 1), "its record is whole");
    let damage = &report.findings[0];
    assert_eq!((damage.name(), damage.key.as_deref()), ("ImageDecode", Some("cat/bad.tif")));
    assert!(damage.message.contains("the tiff decoder panicked"), "{}", damage.message);

    let out = temp.path().join("out");
    let options = with!(ExportOptions::new(ExportKind::Folder), jobs = NonZeroUsize::new(2).unwrap());
    assert_eq!(export(dataset.splits(), &out, &options, &()).unwrap().records, 7);
    assert!(snapshot(&out).values().any(|file| *file == panicking_tiff()));
}

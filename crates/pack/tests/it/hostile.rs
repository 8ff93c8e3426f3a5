//! Archives that expand: headers of tars, and fields.

use crate::support::{chain, jpeg, names, put};
use shardtool_pack::{Options, pack, plan};
use std::io::Write;
use std::path::Path;

/// Appends a GNU long name (`L`) of `bytes` bytes or a pax header (`x`), then the member that it names.
fn long(tar: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, content: &[u8], file: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_path("././@LongLink").unwrap();
    header.set_cksum();
    tar.append(&header, content).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_size(file.len() as u64);
    header.set_path("short.jpg").unwrap();
    header.set_cksum();
    tar.append(&header, file).unwrap();
}

fn add(tar: &mut tar::Builder<Vec<u8>>, path: &str, file: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(file.len() as u64);
    tar.append_data(&mut header, path, file).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// Packs an archive. Returns the number of images packed, and the reasons of the rejects.
fn packed(folder: &Path, archive: &Path) -> (u64, Vec<String>) {
    let set = folder.join("set");
    let options = Options::new(archive, &set);
    let rejected = plan(&options).map(|plan| plan.rejected().iter().map(|r| chain(&r.reason)).collect::<Vec<_>>());
    let summary = pack(&options, &()).unwrap();
    let listed = summary.rejected_file.map(|file| std::fs::read_to_string(file).unwrap()).unwrap_or_default();
    let mut reasons = rejected.unwrap_or_default();
    reasons.extend(listed.lines().map(str::to_owned));
    assert!(names(&set).iter().any(|name| name == "dataset.json"));
    let images = summary.split.records();
    std::fs::remove_dir_all(&set).unwrap();
    (images, reasons)
}

#[test]
fn tar_headers_are_limited_before_they_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let photo = jpeg(1, 16, 16);
    let name = |bytes: usize| [b"a/".as_slice(), &vec![b'n'; bytes - 7], b".jpg\0"].concat();
    let pax = |bytes: usize| {
        let record = format!("{bytes} comment={}\n", "c".repeat(bytes - 10 - bytes.to_string().len()));
        assert_eq!(record.len(), bytes);
        record.into_bytes()
    };
    let (long_name, long_pax) = (tar::EntryType::GNULongName, tar::EntryType::XHeader);
    for (kind, content, limit) in [
        (long_name, name(4096), false),
        (long_pax, pax(100_000), false),
        (long_name, name(3 << 20), true),
        (long_pax, pax(3 << 20), true),
    ] {
        let mut tar = tar::Builder::new(vec![]);
        // Larger than the limit, so that skipping it must not count.
        add(&mut tar, "a/whole.jpg", &photo);
        add(&mut tar, "a/first.jpg", &photo);
        add(&mut tar, "a/first.bin", &vec![0; 5 << 20]);
        long(&mut tar, kind, &content, &photo);
        add(&mut tar, "a/last.jpg", &photo);
        let tar = tar.into_inner().unwrap();
        for (file, bytes) in [("a.tar", tar.clone()), ("a.tar.gz", gzip(&tar))] {
            let archive = temp.path().join(file);
            put(&archive, &bytes);
            let (images, reasons) = packed(temp.path(), &archive);
            if limit {
                assert_eq!(images, 1, "{file}: the samples before the one that the header ends");
                let named = |reason: &String| reason.contains("long name or pax header of more than 1048576 bytes");
                assert!(reasons.iter().any(named), "{file}: {reasons:?}");
            } else {
                assert_eq!((images, reasons), (4, vec![]), "{file}");
            }
        }
    }
}

#[test]
fn a_sample_of_very_many_fields_takes_time_in_proportion() {
    // Every pair of fields compared, this takes half a minute in a build with optimisations.
    let temp = tempfile::tempdir().unwrap();
    let mut tar = tar::Builder::new(vec![]);
    add(&mut tar, "a.jpg", &jpeg(1, 16, 16));
    for field in 0..100_000 {
        add(&mut tar, &format!("a.f{field}"), b"1");
    }
    let archive = temp.path().join("a.tar");
    put(&archive, &tar.into_inner().unwrap());
    let refused = pack(&Options::new(&archive, temp.path().join("set")), &()).unwrap_err();
    assert!(chain(&refused).contains("4096"), "{}", chain(&refused));
}

//! Checks run from the page.

use crate::support::{Site, write};
use std::path::Path;

fn token(site: &Site) -> String {
    let page = site.page("/-/health");
    page.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// Runs a check to its end and returns the health page.
fn check(site: &Site, kind: &str) -> String {
    let answer = site.request("POST", "/-/check", &[], &format!("kind={kind}&token={}", token(site)));
    assert_eq!((answer.status, answer.header("location")), (303, Some("/-/health")));
    loop {
        let part = site.page("/-/health/part");
        if !part.contains("data-running") {
            return part;
        }
        std::thread::yield_now();
    }
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 4;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn verification_maps_a_flipped_bit_to_its_shard_and_record() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("it's mine");
    write(&dataset, 100);
    let shards = std::fs::read_dir(&dataset)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tfrecord"));
    let shards = shards.count();
    assert!(shards > 3, "{shards}");
    let good = check(&Site::of(&dataset), "decode");
    assert!(good.contains("No damage found") && good.contains("100 good records"), "{good}");
    // One more in the legend.
    assert_eq!(good.matches("data-state=\"good\"").count(), shards + 1);

    let split = shardtool_read::Dataset::open(&dataset).unwrap().split("train").unwrap().clone();
    let id = split.starts()[2] + 1;
    let range = split.shard(2).unwrap().frame(1).unwrap();
    let offset = range.start;
    flip(&dataset.join("train-00002.tfrecord"), range.start as usize + 60);
    let site = Site::of(&dataset);
    let found = check(&site, "verify");
    assert_eq!(found.matches("data-state=\"damaged\"").count(), 2, "one shard, and the legend");
    for text in ["DataCrc", &format!("/train/record/{id}\""), "one sample", "99 good records", r"it'\''s mine"] {
        assert!(found.contains(text), "{text}: {found}");
    }
    let record = site.page(&format!("/train/record/{id}"));
    for text in ["cannot be read", "damaged: the bytes have", &format!("{offset:08x}  "), "It costs this one sample"] {
        assert!(record.contains(text), "{text}: {record}");
    }
    let placeholder = site.get(&format!("/train/thumb/{id}"));
    assert_eq!((placeholder.status, placeholder.header("content-type")), (200, Some("image/svg+xml")));
    assert!(site.page("/train").contains(&format!("/thumb/{id}?")), "it has a cell");
    assert!(site.page(&format!("/train/record/{}", id + 1)).contains("caption number"));
}

#[test]
fn a_damaged_index_is_named_and_other_shards_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 100);
    let index = folder.path().join("_index/train-00001.tfrecord.index");
    let middle = std::fs::metadata(&index).unwrap().len() as usize / 2;
    for at in 0..200 {
        flip(&index, middle + at);
    }
    let site = Site::of(folder.path());
    assert!(check(&site, "verify").contains("ColumnCrc"));
    for path in ["/train", "/train?sort=image/width", "/train?q=caption", "/train/columns", "/train/record/99"] {
        let answer = site.get(path);
        assert!([200, 400].contains(&answer.status), "{path}: {}", answer.text());
    }
}

#[test]
fn equal_images_are_found_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 300);
    let split = shardtool_read::Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut images: Vec<_> = (0..300).map(|id| split.get(id).unwrap().image().unwrap().unwrap().to_vec()).collect();
    images.sort();
    let extra = images.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let page = check(&Site::of(folder.path()), "duplicates");
    assert!(
        page.contains(&format!("{extra} records with the image of another record")) || extra == 0,
        "{extra}: {page}"
    );
}

#[test]
fn labels_outside_the_classes_and_lonely_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let page = Site::of(folder.path()).page("/-/health");
    assert!(page.contains("Classes with one sample") && page.contains("owl"), "{page}");
    assert!(page.contains("1 class without samples"), "{page}");
}

//! Pictures and records made to hurt: bare TFRecords, as other programs write them.

#[path = "../../../decode/tests/made/panicking_tiff.rs"]
mod panicking_tiff;

use crate::support::{MARKUP, Site, jpeg};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Column, encode};
use shardtool_format::frame;
use std::path::Path;

fn write(file: &Path, records: &[Vec<u8>]) {
    let mut out = vec![];
    for data in records {
        out.extend(frame::header(data.len() as u64));
        out.extend(data);
        out.extend(frame::footer(crc32c(data)));
    }
    std::fs::write(file, out).unwrap();
}

fn record(key: &str, image: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    let (key, image) = ([key.as_bytes()], [image]);
    encode(&mut [("image/key", Column::Bytes(&key)), ("image/encoded", Column::Bytes(&image))], &mut out);
    out
}

/// The header of a bitmap of that size, without pixels.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let mut bmp = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bmp.extend(width.to_le_bytes());
    bmp.extend(height.to_le_bytes());
    bmp.extend(b"\x01\0\x18\0");
    bmp.extend([0; 24]);
    bmp
}

/// Peak of the memory of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn hostile_pictures_cost_a_placeholder_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("theirs.tfrecord");
    let good = jpeg(300, 200, 9);
    let truncated = &good[..good.len() / 2];
    let page = format!("<html>{MARKUP}</html>");
    let records = [
        record("good", &good),
        record("bomb", &bmp(60_000, 2_000)),
        record("larger bomb", &bmp(65_535, 65_535)),
        record("truncated", truncated),
        record("panics the decoder", &panicking_tiff::panicking_tiff()),
        record("a page", page.as_bytes()),
        record(MARKUP, b""),
        b"not an example".to_vec(),
    ];
    write(&file, &records);
    let site = Site::of(&file);
    let before = peak();
    let gallery = site.page("/train");
    assert!(gallery.contains("8 record") && !gallery.contains("<script>alert"), "{gallery}");
    for id in 0..8 {
        let thumbnail = site.get(&format!("/train/thumb/{id}"));
        let expected = if id == 0 { "image/jpeg" } else { "image/svg+xml" };
        assert_eq!((thumbnail.status, thumbnail.header("content-type")), (200, Some(expected)), "{id}");
        assert_eq!(site.get(&format!("/train/record/{id}")).status, 200, "{id}");
        let image = site.get(&format!("/train/image/{id}"));
        assert_ne!(image.header("content-type"), Some("text/html"), "{id}");
        assert!(site.get(&format!("/train/drawn/{id}")).status == 200, "{id}");
    }
    assert!(site.get("/train/thumb/1").text().contains("--memory"), "{}", site.get("/train/thumb/1").text());
    assert!(site.get("/train/thumb/4").text().contains("panicked"), "{}", site.get("/train/thumb/4").text());
    assert!(peak() - before < 150 << 10, "{} KiB", peak() - before);
    assert_eq!(site.ids("/train?q=bomb"), [1, 2], "keys of bare files are searched in the records");
}

#[test]
fn steps_that_would_take_much_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("theirs.tfrecord");
    write(&file, &[record("good", &jpeg(30, 20, 9))]);
    let site = Site::of(&file);
    for steps in [
        r#"[{"resize_to":{"size":[60000,60000]}}]"#,
        r#"[{"pad":{"padding":[60000,60000,60000,60000]}},{"resize_to":{"size":[2000,8]}}]"#,
        "[",
        "[]",
    ] {
        let encoded: String = steps.bytes().map(|byte| format!("%{byte:02x}")).collect();
        assert_eq!(site.get(&format!("/train/drawn/0?steps={encoded}")).status, 400, "{steps}");
    }
    assert_eq!(site.get("/train/drawn/0?size=4000000000").status, 200, "sizes are bounded");
}

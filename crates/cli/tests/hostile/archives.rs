//! Archives that claim more than they hold: `index` reads what they hold, names the rest, and allocates no memory for it.

use crate::corpus::{bitmap, limited, packed, put, shardtool, text};
use serde_json::Value;
use std::path::Path;

/// The header of a member, with a checksum.
fn header(name: &str, kind: u8, size: [u8; 12]) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(&size);
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    sealed(header)
}

/// Sets the checksum of a header.
fn sealed(mut header: [u8; 512]) -> [u8; 512] {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn octal(size: u64) -> [u8; 12] {
    format!("{size:011o}\0").into_bytes().try_into().unwrap()
}

/// The size in base 256, as GNU tar writes sizes of 8 GiB and more.
fn wide(size: u64) -> [u8; 12] {
    let mut field = [0; 12];
    field[0] = 0x80;
    field[4..].copy_from_slice(&size.to_be_bytes());
    field
}

fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
    [&header(name, b'0', octal(bytes.len() as u64))[..], &padded(bytes)].concat()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(512), 0);
    padded
}

/// A pax header of one record, for the next member.
fn pax(name: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {name}={value}\n");
    let length =
        (1..4).map(|digits| rest.len() + digits).find(|length| length.to_string().len() + rest.len() == *length);
    let record = format!("{}{rest}", length.unwrap());
    [&header("pax", b'x', octal(record.len() as u64))[..], &padded(record.as_bytes())].concat()
}

/// A GNU sparse member of one block of data, which claims to be this large with its holes.
fn sparse(name: &str, bytes: &[u8], claimed: u64) -> Vec<u8> {
    let mut header = header(name, b'S', octal(bytes.len() as u64));
    // One piece at offset 0, and the real size.
    header[386..398].copy_from_slice(&octal(0));
    header[398..410].copy_from_slice(&octal(bytes.len() as u64));
    header[483..495].copy_from_slice(&wide(claimed));
    [&sealed(header)[..], &padded(bytes)].concat()
}

/// Indexes a source in little memory. Returns the number of records, and the reasons of the rejects.
#[track_caller]
fn indexed(source: &Path, out: &Path) -> (u64, Vec<String>) {
    let output = limited(1024, &["index", text(source), "--out", text(out), "--json"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0..=2)), "{source:?}: {}: {errors}", output.status);
    assert!(!errors.contains("panicked"), "{source:?}: {errors}");
    if output.status.code() == Some(2) {
        assert!(!out.join("dataset.json").exists(), "{errors}");
        return (0, vec![errors]);
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = document["splits"][0]["records"].as_u64().expect("a number of records");
    let listed = std::fs::read_to_string(out.join("rejected-train.jsonl")).unwrap_or_default();
    let verified = shardtool(&["verify", text(out), "--source", text(source.parent().unwrap()), "--decode"]);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
    (records, listed.lines().map(str::to_owned).collect())
}

#[test]
fn tars_that_claim_more_than_they_hold_cost_what_they_hold() {
    let temp = tempfile::tempdir().unwrap();
    let good = [member("a.bmp", &bitmap(1)), member("a.cls", b"0")].concat();
    let last = [member("z.bmp", &bitmap(9)), member("z.cls", b"1")].concat();
    let image = bitmap(2);
    let claims = |size: [u8; 12]| [&header("b.bmp", b'0', size)[..], &padded(&image)].concat();
    let most = (1u64 << 63) - 1;
    // How many samples are read, and what is said of the one that is not. A header that cannot be read loses the sample before it too,
    // whose members it might have.
    for (number, (hostile, expected, said)) in [
        (claims(wide(most)), 1, "the sample ends at byte 9223372036854778367"),
        (claims(wide(1 << 63)), 1, "the sample ends at byte 9223372036854778368"),
        (claims(wide(u64::MAX)), 0, "size overflow"),
        (claims([0xff; 12]), 0, "size overflow"),
        ([pax("size", "9223372036854775807"), member("b.bmp", &image)].concat(), 1, "the rest of the file is lost"),
        (sparse("b.bmp", &image, image.len() as u64), 2, "a sparse file"),
        (sparse("b.bmp", &image, most), 0, "sparse file chunks"),
        ([member("b.bmp", &image), member("b.bmp", &bitmap(3)), member("b.cls", b"0")].concat(), 2, "`bmp` twice"),
        ([member("b.bmp", &image), member("b.BMP", &bitmap(3)), member("b.cls", b"0")].concat(), 2, "`bmp` twice"),
    ]
    .into_iter()
    .enumerate()
    {
        let source = temp.path().join(number.to_string());
        put(&source.join("train.tar"), &[&good[..], &hostile, &last, &[0; 1024]].concat());
        let (records, rejected) = indexed(&source, &temp.path().join(format!("{number}-index")));
        assert_eq!(records, expected, "{number}: {rejected:?}");
        assert_eq!(rejected.len(), 1, "{number}: {rejected:?}");
        assert!(rejected[0].contains("train.tar") && rejected[0].contains(said), "{number}: {rejected:?}");
    }
}

#[test]
fn pages_that_claim_two_gibibytes_are_not_allocated() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), &["a", "b"], 40);
    let source = temp.path().join("parquet");
    let output = shardtool(&["export", text(&set), text(&source), "--to", "parquet"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let file = std::fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "parquet"))
        .unwrap();
    let whole = std::fs::read(&file).unwrap();
    let (records, rejected) = indexed(&source, &temp.path().join("whole"));
    assert_eq!((records, rejected), (80, vec![]));
    // The first page's header begins behind the magic: three fields of type i32, of which the second and the third are lengths.
    assert_eq!((whole[4], whole[6]), (0x15, 0x15), "a page header of Thrift's compact protocol");
    let varint = |at: usize| whole[at..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (first, second) = (7, 7 + varint(7) + 1);
    let end = second + varint(second);
    let claimed = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let plain = |at: usize, length: usize| whole[at..at + length].to_vec();
    for (number, (uncompressed, compressed)) in [
        (claimed.to_vec(), claimed.to_vec()),
        (claimed.to_vec(), plain(second, end - second)),
        (plain(first, second - 1 - first), claimed.to_vec()),
    ]
    .into_iter()
    .enumerate()
    {
        let header = [&whole[..first], &uncompressed, &[0x15], &compressed].concat();
        // As many bytes of the page are left out, so that the places of all others are the same.
        let hostile = [&header[..], &whole[end..200], &whole[200 + header.len() - end..]].concat();
        assert_eq!(hostile.len(), whole.len());
        let source = temp.path().join(format!("hostile-{number}"));
        put(&source.join("train-00000.parquet"), &hostile);
        let (records, said) = indexed(&source, &temp.path().join(format!("index-{number}")));
        assert_eq!(records, 0, "{number}: {said:?}");
        assert!(said[0].contains("train-00000.parquet"), "{number}: {said:?}");
    }
}

//! Numbers of 64 bits, of which float32 and int64 would make others: on the page of a record, filtered and sorted; and lists.

use crate::support::Site;
use shardtool_format::manifest::DType;
use shardtool_pack::{Sample, Value, Writer, WriterOptions};

#[test]
fn numbers_of_logical_types_are_shown_filtered_and_sorted() {
    let times = [1_700_000_000.123, -1e300, 0.5, 1_700_000_000.125];
    let hashes = [1 << 63, u64::MAX, 7, (1 << 53) + 1];
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriterOptions::new(folder.path(), "train");
    options.images = false;
    options.features = vec![("time".to_owned(), DType::Float64), ("hash".to_owned(), DType::Uint64)];
    let writer = Writer::open(&options).unwrap();
    for (row, (time, hash)) in times.into_iter().zip(hashes).enumerate() {
        let values = vec![("time", Value::Float64(vec![time])), ("hash", Value::Uint64(vec![hash]))];
        writer.write(&Sample { key: &row.to_string(), image: None, label: None, values }).unwrap();
    }
    writer.finish().unwrap();
    let site = Site::of(folder.path());
    let page = site.get("/train/record/0").text();
    assert!(page.contains("1700000000.123") && page.contains("9223372036854775808"), "{page}");
    assert!(page.contains("title=\"float64\"") && page.contains("title=\"uint64\""), "{page}");
    let ids = |query: &str| site.ids(&format!("/train/cells?{query}&count=10"));
    assert_eq!(ids("filter=hash%3D18446744073709551615"), [1]);
    assert_eq!(ids("filter=time%3E1700000000.124"), [3]);
    assert_eq!(ids("sort=time"), [1, 2, 0, 3]);
    assert_eq!(ids("sort=hash"), [2, 3, 0, 1]);
    assert_eq!(site.get("/train?filter=hash%3D-1").status, 400);
}

#[test]
fn filters_do_not_take_lists_for_missing_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriterOptions::new(folder.path(), "train");
    options.images = false;
    options.features = vec![("tags".to_owned(), DType::Int64)];
    options.shard_size = 300;
    let writer = Writer::open(&options).unwrap();
    for row in 0..40 {
        let tags = match row {
            35 => vec![35, 100],
            7 => vec![],
            row => vec![row],
        };
        let values = if tags.is_empty() { vec![] } else { vec![("tags", Value::Int64(tags))] };
        writer.write(&Sample { key: &row.to_string(), image: None, label: None, values }).unwrap();
    }
    writer.finish().unwrap();
    let site = Site::of(folder.path());
    assert!(shardtool_read::Dataset::open(folder.path()).unwrap().splits()[0].entry().shards.len() > 3);
    assert_eq!(site.ids("/train/cells?filter=tags%3D&count=50"), [7]);
    assert_eq!(site.ids("/train/cells?filter=tags%3D3&count=50"), [3]);
    for filter in ["tags%3D100", "tags%3E%3D0", "tags!%3D3"] {
        let page = site.get(&format!("/train?filter={filter}")).text();
        assert!(page.contains("record `35` has several values of `tags`"), "{filter}: {page}");
    }
}

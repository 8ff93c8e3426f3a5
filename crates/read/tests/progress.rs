//! Verification reports every record as progress, several at a time.

mod written;

use shardtool_read::Dataset;
use shardtool_read::verify::{self, verify};
use std::sync::Mutex;
use written::RECORDS;

#[test]
fn verify_reports_every_record_once_and_short_ones_together() {
    let folder = tempfile::tempdir().unwrap();
    written::write(folder.path(), |_| ());
    let dataset = Dataset::open(folder.path()).unwrap();
    let reported = Mutex::new(vec![]);
    let progress = |records: u64, bytes: u64| reported.lock().unwrap().push((records, bytes));
    let mut options = verify::Options::default();
    options.progress = Some(&progress);
    let report = verify(&dataset, &options);
    let reported = reported.into_inner().unwrap();
    let (records, bytes) = reported.iter().fold((0, 0), |sum, (records, bytes)| (sum.0 + records, sum.1 + bytes));
    assert_eq!((records, bytes), (RECORDS, report.bytes));
    assert_eq!(report.good_records, RECORDS);
    assert!((2..RECORDS as usize / 2).contains(&reported.len()), "{reported:?}");
}

//! A wrong offset in an index whose CRCs are right costs its own record only.

mod written;

use shardtool_read::{Access, Dataset, Options, verify};
use written::{RECORDS, image, write};

#[test]
fn wrong_offset_costs_only_its_own_record() {
    const WRONG: usize = 20;
    type Change = fn(&mut Vec<u64>);
    let changes: [Change; 8] = [
        |offsets| offsets[WRONG] += 1,
        |offsets| offsets[WRONG] -= 1,
        |offsets| offsets[WRONG] = 0,
        |offsets| offsets[WRONG] = offsets[WRONG - 1],
        |offsets| offsets[WRONG] = offsets[WRONG + 1],
        |offsets| offsets[WRONG] = offsets[WRONG + 3],
        |offsets| offsets[WRONG] = offsets[WRONG - 5],
        |offsets| offsets[WRONG] = u64::MAX,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), change);
        for access in [Access::Mmap, Access::Pread] {
            let dataset = Dataset::open_with(folder.path(), Options::default().with_access(access)).unwrap();
            let split = dataset.split("train").unwrap();
            for id in 0..RECORDS {
                // Hints load nothing that is not there.
                [id + 1, u64::MAX].into_iter().for_each(|ahead| split.prefetch(ahead));
                match split.get(id) {
                    Ok(record) => assert_eq!(record.image().unwrap(), Some(&image(id)[..]), "{number}: record {id}"),
                    Err(error) => {
                        assert_eq!(id as usize, WRONG, "{number}: {error}");
                        assert!(error.is_damage(), "{number}: {error}");
                    }
                }
            }
            assert!(split.get(WRONG as u64).is_err(), "{number}");
            split.shard(0).unwrap().prefetch(u64::MAX);
            // It loads headers ahead at these offsets.
            let report = verify::verify(&dataset, &verify::Options::default());
            assert_eq!(report.good_records, RECORDS, "{number}");
            assert!(!report.findings.is_empty(), "{number}");
        }
    }
}

//! Frames of a file are found by their headers; a damaged one is named by its number, and the next one is found again.

use shardtool_format::{checksum::crc32c, frame};
use shardtool_read::{Access, Error, FileBytes, Frames};

const LENGTHS: [usize; 5] = [3, 0, 40, 7, 100];

#[test]
fn damaged_frame_is_named_and_the_next_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train-00000.tfrecord");
    let (mut file, mut starts) = (vec![], vec![]);
    for length in LENGTHS {
        starts.push(file.len() as u64);
        let data = vec![5; length];
        file.extend(frame::header(length as u64));
        file.extend(&data);
        file.extend(frame::footer(crc32c(&data)));
    }
    // The length of the fourth frame.
    file[starts[3] as usize] ^= 1;
    std::fs::write(&path, &file).unwrap();
    for access in [Access::Mmap, Access::Pread] {
        let bytes = FileBytes::open(&path, access).unwrap();
        let mut frames = Frames::new(&bytes, &path);
        for number in 0..3 {
            assert_eq!(frames.next().unwrap().unwrap(), starts[number]..starts[number + 1]);
        }
        match frames.next() {
            Some(Err(Error::Record { record, path: named, .. })) => assert_eq!((record, named), (3, path.clone())),
            other => panic!("{other:?}"),
        }
        assert_eq!((frames.position(), frames.next().is_none()), (starts[3], true));
        assert!(frames.resync().unwrap());
        assert_eq!(frames.next().unwrap().unwrap(), starts[4]..file.len() as u64);
        assert!(frames.next().is_none());
    }
}

//! Files of other formats, recognised by their first bytes: a message then names the format, and does not call the file damaged.

/// Bytes of a file that are enough to recognise it.
pub(crate) const HEAD: usize = 512;

/// First bytes, and what a file that begins with them is.
const SIGNATURES: [(&[u8], &str); 12] = [
    (b"PAR1", "it is a Parquet file: convert it with `shardtool pack`"),
    (b"PK\x03\x04", "it is a zip archive: extract it, and convert the files with `shardtool pack`"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd: convert the tar in it with `shardtool pack`"),
    (b"\x89HDF", "it is an HDF5 file: write its arrays with `shardtool.Writer`"),
    (b"\x93NUMPY", "it is a numpy array: pack it with `shardtool pack --array`, or write it with `shardtool.Writer`"),
    (b"ARROW1", "it is an Arrow file: write it as Parquet, and convert that with `shardtool pack`"),
    (b"\xff\xd8\xff", "it is an image: pack a folder of images with `shardtool pack`"),
    (b"\x89PNG", "it is an image: pack a folder of images with `shardtool pack`"),
    (b"RIFF", "it is an image, or another RIFF file: pack a folder of images with `shardtool pack`"),
    (b"SQLite format 3", "it is a SQLite database: write its rows with `shardtool.Writer`"),
    (b"%PDF", "it is a PDF document"),
    (b"\x89STI\r\n\x1a\n", "it is the index of a shard: name the shard, or the folder of the dataset"),
];

/// Returns what a file with these first bytes is, if it is not a TFRecord file; `None` if that is not known.
pub(crate) fn kind(head: &[u8]) -> Option<&'static str> {
    if head.get(257..262) == Some(b"ustar") {
        return Some("it is a tar archive: convert it with `shardtool pack`");
    }
    if let Some((_, kind)) = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)) {
        return Some(kind);
    }
    // The length of a first frame is below 2⁵⁶, so that a TFRecord file has a zero in its first eight bytes.
    let text = !head.is_empty() && head.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r'));
    text.then_some("it is a text file: convert a CSV or JSONL list, or COCO annotations, with `shardtool pack`")
}

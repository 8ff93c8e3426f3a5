//! Parquet files as others write them: pages that are not compressed, those of codecs that leave JPEGs as they are, of both versions, with
//! dictionaries and without.

use crate::support::{chain, names, picture, put};
use image::codecs::jpeg::JpegEncoder;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use shardtool_order::Rng;
use shardtool_pack::{Options, index_source};
use std::path::Path;
use std::sync::Arc;

/// A photograph: its entropy-coded bytes do not repeat.
fn photo(seed: u32) -> Vec<u8> {
    let (mut image, mut rng, mut out) = (picture(seed, 60, 50), Rng::new(u64::from(seed) + 5), vec![]);
    image.iter_mut().for_each(|value| *value = value.wrapping_add(rng.below(40) as u8));
    JpegEncoder::new_with_quality(&mut out, 90).encode_image(&image).unwrap();
    out
}

/// The bytes of a column of images.
fn column(name: &str) -> ColumnPath {
    ColumnPath::new(vec![name.to_owned(), "bytes".to_owned()])
}

/// Writes a column of byte strings at this definition level.
fn strings(columns: &mut SerializedRowGroupWriter<'_, Vec<u8>>, level: i16, values: &[ByteArray]) {
    let mut column = columns.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(values, Some(&vec![level; values.len()]), None).unwrap();
    column.close().unwrap();
}

/// A photograph with a long comment, which a codec shortens.
fn with_comment(seed: u32) -> Vec<u8> {
    let photo = photo(seed);
    let comment = [&[0xff, 0xfe, 0xff, 0xff][..], &[b' '; 0xffff - 2]].concat();
    [&photo[..2], &comment, &photo[2..]].concat()
}

/// Writes rows of photographs in Hugging Face's struct, labels, second images, and texts.
fn write(path: &Path, properties: WriterPropertiesBuilder, rows: std::ops::Range<u32>) {
    write_images(path, properties, rows, &photo);
}

/// Writes rows of images in Hugging Face's struct, labels, second images, and texts.
fn write_images(
    path: &Path,
    properties: WriterPropertiesBuilder,
    rows: std::ops::Range<u32>,
    image: &dyn Fn(u32) -> Vec<u8>,
) {
    let schema = "message schema { optional group image { optional binary bytes; optional binary path (UTF8); }
        required int64 label; optional group second { optional binary bytes; optional binary path (UTF8); }
        optional binary text (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    // Small pages, so that values lie in several.
    let properties = properties.set_data_page_size_limit(30_000).set_write_batch_size(3).build();
    let mut out = SerializedFileWriter::new(vec![], schema, Arc::new(properties)).unwrap();
    let half = rows.start.midpoint(rows.end);
    for group in [rows.start..half, half..rows.end] {
        let mut columns = out.next_row_group().unwrap();
        let each = |value: &dyn Fn(u32) -> Vec<u8>| group.clone().map(value).map(ByteArray::from).collect::<Vec<_>>();
        strings(&mut columns, 2, &each(image));
        strings(&mut columns, 2, &each(&|i| format!("{i:04}.jpg").into_bytes()));
        let mut column = columns.next_column().unwrap().unwrap();
        let labels: Vec<_> = group.clone().map(|i| i64::from(i % 3)).collect();
        column.typed::<Int64Type>().write_batch(&labels, None, None).unwrap();
        column.close().unwrap();
        // The same ones again and again: a dictionary has each once.
        strings(&mut columns, 2, &each(&|i| photo(500 + i % 4)));
        strings(&mut columns, 2, &each(&|i| format!("{i:04}-second.jpg").into_bytes()));
        strings(&mut columns, 1, &each(&|i| format!("text {i} ").repeat(60).into_bytes()));
        columns.close().unwrap();
    }
    put(path, &out.into_inner().unwrap());
}

/// Writes a folder of files of each kind that is read in place; returns the kinds.
pub(crate) fn sources(root: &Path) -> [&'static str; 6] {
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    let snappy = || plain().set_compression(Compression::SNAPPY);
    let kinds = [
        ("parquet", plain()),
        ("parquet-v2", snappy().set_writer_version(WriterVersion::PARQUET_2_0)),
        ("parquet-snappy", snappy()),
        ("parquet-zstd", plain().set_compression(Compression::ZSTD(ZstdLevel::default()))),
        ("parquet-lz4", plain().set_compression(Compression::LZ4_RAW)),
        ("parquet-dictionary", snappy().set_dictionary_enabled(true)),
    ];
    for (kind, properties) in &kinds {
        for file in 0..2 {
            let path = root.join(kind).join(format!("train-{file:05}-of-00002.parquet"));
            // The encoding of pages of version 2 without a dictionary is DELTA_BYTE_ARRAY, which has prefixes.
            let properties = properties.clone().set_column_encoding(column("image"), Encoding::PLAIN);
            let lengths = Encoding::DELTA_LENGTH_BYTE_ARRAY;
            write(&path, properties.set_column_encoding(column("second"), lengths), file * 20..file * 20 + 17);
        }
    }
    kinds.map(|(kind, _)| kind)
}

#[test]
fn images_that_a_codec_changes_are_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    let zstd = plain().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let gzip = plain().set_compression(Compression::GZIP(GzipLevel::default()));
    let prefixes = plain().set_column_encoding(column("image"), Encoding::DELTA_BYTE_ARRAY);
    for (properties, image, words) in [
        (zstd, with_comment as fn(u32) -> Vec<u8>, &["ZSTD", "% of their bytes"][..]),
        (gzip, with_comment, &["GZIP", "% of their bytes"]),
        (prefixes, photo, &["DELTA_BYTE_ARRAY"]),
    ] {
        let word = words[0];
        let folder = temp.path().join(word);
        write_images(&folder.join("a.parquet"), properties, 0..9, &image);
        let error = chain(&index_source(&Options::new(&folder, Path::new("")), &[], &()).unwrap_err());
        for part in words.iter().chain(&["a.parquet", "column \"image\"", "shardtool pack"]) {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(names(&folder), ["a.parquet"], "a refused index leaves no file");
    }
}

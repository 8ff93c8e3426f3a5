//! Refuses files whose chunks take far more work than the length of the file or the size of the image explains. Chunks may share
//! their data, and tiles may extend beyond the image, so a short header could otherwise ask for any amount of work.

use super::error::unsupported;
use super::layout::Layout;
use super::tags::compression;
use crate::error::Error;

/// The work of decoding an image, in bytes.
#[derive(Debug, PartialEq)]
pub(super) struct Work {
    /// Compressed bytes that are read, the tables before each JPEG included.
    pub(super) compressed: u64,
    /// Bytes that are decompressed.
    pub(super) decompressed: u64,
}

impl Work {
    /// Returns an error if `planes` planes of tiles hold far more than the image: more than 8 times its bytes and 256 MiB, which
    /// is more than that of the smallest image in the largest tiles that writers use.
    pub(super) fn decompressed(layout: &Layout<'_>, planes: usize) -> Result<u64, Error> {
        let planes = planes as u64;
        let rows = match layout.compression {
            // A JPEG is decoded to its end.
            compression::JPEG => u64::from(layout.height.div_ceil(layout.chunk.1)) * u64::from(layout.chunk.1),
            _ => layout.height.into(),
        };
        let bits = layout.chunk_samples() as u64 * u64::from(layout.bits);
        let image = (u64::from(layout.width) * bits).div_ceil(8).saturating_mul(u64::from(layout.height) * planes);
        let row = layout.row_bytes() * u64::from(layout.width.div_ceil(layout.chunk.0));
        let bytes = row.saturating_mul(rows).saturating_mul(planes);
        match bytes <= image.saturating_mul(8).saturating_add(256 << 20) {
            true => Ok(bytes),
            false => Err(unsupported("tiles far larger than the image")),
        }
    }

    /// Adds `bytes` compressed bytes. Returns an error if that makes more than 4 times the file's length and 16 times the
    /// decompressed bytes: damaged lengths of a few bytes for each pixel pass, many chunks with the same long data do not.
    pub(super) fn read(&mut self, bytes: usize, file: &[u8]) -> Result<(), Error> {
        self.compressed = self.compressed.saturating_add(bytes as u64);
        let most = (file.len() as u64).saturating_mul(4).saturating_add(self.decompressed.saturating_mul(16));
        match self.compressed <= most {
            true => Ok(()),
            false => Err(unsupported("strips or tiles that together are far longer than the file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::Codec;
    use super::*;
    use crate::{DecodeOptions, decode};

    /// Returns a little-endian file of the tags and then `data`, to which the offsets of chunks are relative.
    fn tiff(tags: &[(u32, u32)], lists: &[(u32, Vec<u32>)], data: &[u8]) -> Vec<u8> {
        let count = tags.len() + lists.len();
        let mut beyond = 8 + 2 + 12 * count + 4;
        let start = beyond + lists.iter().map(|(_, list)| 4 * list.len()).sum::<usize>();
        let mut entries: Vec<_> = tags.iter().map(|(tag, value)| (*tag, 1, *value)).collect();
        let mut values = vec![];
        for (tag, list) in lists {
            let base = if matches!(tag, 273 | 324) { start as u32 } else { 0 };
            assert_ne!(list.len(), 1, "stored in the entry");
            entries.push((*tag, list.len(), beyond as u32));
            values.extend(list.iter().flat_map(|value| (value + base).to_le_bytes()));
            beyond += 4 * list.len();
        }
        entries.sort_unstable();
        let mut file = b"II*\0\x08\0\0\0".to_vec();
        file.extend((count as u16).to_le_bytes());
        for (tag, count, value) in entries {
            file.extend((tag as u16).to_le_bytes());
            file.extend(4u16.to_le_bytes());
            file.extend((count as u32).to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        file.extend([0; 4]);
        file.extend(values);
        file.extend(data);
        file
    }

    fn work(file: &[u8]) -> Result<Work, Error> {
        let layout = Layout::read(file)?;
        Codec::new(&layout, None, None)?.work(file, 1)
    }

    fn refusal(file: &[u8]) -> String {
        decode(file, &DecodeOptions::default()).unwrap_err().to_string()
    }

    fn jpeg(side: u16) -> Vec<u8> {
        let mut jpeg = vec![];
        let pixels: Vec<u8> = (0..usize::from(side).pow(2)).map(|i| i as u8).collect();
        jpeg_encoder::Encoder::new(&mut jpeg, 90).encode(&pixels, side, side, jpeg_encoder::ColorType::Luma).unwrap();
        jpeg
    }

    fn no_tables() -> Vec<u32> {
        vec![u32::from_le_bytes(*b"\xFF\xD8\xFF\xD9"), 0]
    }

    /// An image of 256x256 pixels in 256 tiles that all begin at the first byte of `data`.
    fn jpeg_tiles(data: &[u8], lengths: &[u32], tables: Vec<u32>) -> Vec<u8> {
        let tags = [(256, 256), (257, 256), (258, 8), (259, 7), (262, 1), (277, 1), (322, 16), (323, 16)];
        tiff(&tags, &[(324, vec![0; 256]), (325, lengths.to_vec()), (347, tables)], data)
    }

    #[test]
    fn reads_only_the_stream_of_each_jpeg_tile() {
        let stream = jpeg(16);
        let data = [&stream[..], &[0; 1 << 20]].concat();
        // Right, missing, and wrong lengths.
        for lengths in [vec![stream.len() as u32; 256], vec![], vec![1; 256], vec![1 << 20; 256]] {
            let file = jpeg_tiles(&data, &lengths, no_tables());
            // An Adobe segment.
            let prefix = 18;
            let expected = Work { compressed: 256 * (stream.len() as u64 + prefix), decompressed: 1 << 16 };
            assert_eq!(work(&file).unwrap(), expected);
            decode(&file, &DecodeOptions::default()).unwrap();
        }
    }

    #[test]
    fn rejects_tiles_that_share_a_long_stream() {
        let stream = jpeg(16);
        let data = [&stream[..stream.len() - 2], &[0; 1 << 20]].concat();
        let refusal = refusal(&jpeg_tiles(&data, &[stream.len() as u32; 256], no_tables()));
        assert!(refusal.contains("together are far longer than the file"), "{refusal}");
    }

    #[test]
    fn rejects_long_tables_before_each_jpeg() {
        // Tables with a comment of 60,000 bytes, which is copied before each stream.
        let comment = [&b"\xFF\xD8\xFF\xFE\xEA\x60"[..], &[0; 59_998], b"\xFF\xD9\0\0"].concat();
        let tables = comment.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let refusal = refusal(&jpeg_tiles(&jpeg(16), &[1; 256], tables));
        assert!(refusal.contains("together are far longer than the file"), "{refusal}");
    }

    /// A bitmap of 8x1000 pixels in strips of one row.
    fn bitmap(compression: u32, offsets: Vec<u32>, lengths: Vec<u32>, data: &[u8]) -> Vec<u8> {
        let tags = [(256, 8), (257, 1000), (258, 1), (259, compression), (262, 0), (266, 2), (278, 1)];
        tiff(&tags, &[(273, offsets), (279, lengths)], data)
    }

    #[test]
    fn reads_as_much_of_each_strip_as_its_length_explains() {
        let data = vec![0; 1 << 19];
        for compression in [2, 3, 4, 5, 8, 32773] {
            let refusal = refusal(&bitmap(compression, vec![0; 1000], vec![1 << 19; 1000], &data));
            assert!(refusal.contains("together are far longer than the file"), "{compression}: {refusal}");
            // Without lengths, strips extend to the next one, and the last one as far as a length may.
            let file = bitmap(compression, (0..1000).collect(), vec![], &data);
            assert_eq!(work(&file).unwrap(), Work { compressed: 999 + 4106, decompressed: 1000 });
        }
        // A length beyond 1 MiB is cut, and without compression a strip is as long as its row.
        let (offsets, lengths) = (vec![0; 1000], vec![1 << 21; 1000]);
        let data = vec![0; 1 << 21];
        let file = bitmap(3, offsets.clone(), lengths.clone(), &data);
        assert_eq!(work(&file).unwrap(), Work { compressed: 1000 * 4106, decompressed: 1000 });
        let file = bitmap(1, offsets, lengths, &data);
        assert_eq!(work(&file).unwrap(), Work { compressed: 1000, decompressed: 1000 });
        decode(&file, &DecodeOptions::default()).unwrap();
    }

    #[test]
    fn rejects_tiles_far_wider_than_the_image() {
        for (width, height, tile) in [(1, 65_535, 1_000_000), (1, 65_535, 300_000_000), (4, 30_000, 1 << 17)] {
            let tags = [(256, width), (257, height), (258, 1), (259, 2), (262, 0), (322, tile), (323, 1)];
            let file = tiff(&tags, &[(324, vec![0; height as usize]), (325, vec![1; height as usize])], &[0; 16]);
            let found = work(&file).unwrap_err().to_string();
            assert!(found.contains("tiles far larger than the image"), "{found}");
            decode(&file, &DecodeOptions::default()).unwrap_err();
        }
        // Ordinary tiles of an image of one column.
        let tags = [(256, 1), (257, 65_535), (258, 8), (259, 1), (262, 0), (322, 1024), (323, 1024)];
        let file = tiff(&tags, &[(324, vec![0; 64]), (325, vec![1 << 20; 64])], &[0; 1 << 20]);
        decode(&file, &DecodeOptions::default()).unwrap();
    }
}

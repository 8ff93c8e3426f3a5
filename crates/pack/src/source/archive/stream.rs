//! Reads a file in constant memory, decompressing it if the whole file is compressed.

use crate::input::Input;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use shardtool_format::frame;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zlib,
    Zstd,
}

/// Bytes per read.
const BUFFER: usize = 256 << 10;

/// Detects the compression of a file from its first bytes: gzip and zlib as for a TFRecord file, and zstd (RFC 8878).
pub(super) fn compression(start: &[u8]) -> Compression {
    match (shardtool_format::Compression::detect(start), start) {
        (Some(shardtool_format::Compression::Gzip), _) => Compression::Gzip,
        (Some(shardtool_format::Compression::Zlib), _) => Compression::Zlib,
        (None, [0x28, 0xb5, 0x2f, 0xfd, ..]) if !frame::begins(start) => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Returns whether a file is compressed as a whole.
///
/// # Errors
/// Those of the system.
pub(super) fn is_compressed(path: &Path) -> io::Result<bool> {
    let mut start = [0; 12];
    let known = Input::open(path)?.read_at(&mut start, 0)?;
    Ok(compression(&start[..known]) != Compression::None)
}

/// Opens a file for reading from its beginning.
///
/// # Errors
/// Those of the system.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::with_capacity(BUFFER, Input::open(path)?);
    Ok(match compression(file.fill_buf()?) {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
        Compression::Zlib => Box::new(BufReader::with_capacity(BUFFER, ZlibDecoder::new(file))),
        Compression::Zstd => {
            Box::new(BufReader::with_capacity(BUFFER, zstd::stream::read::Decoder::with_buffer(file)?))
        }
    })
}

/// Reads `length` bytes into `buffer`, or fewer if the stream ends. Memory grows with the bytes read, not with
/// `length`, which may be damaged. Returns whether all bytes were read.
///
/// # Errors
/// Those of the stream.
pub(super) fn fill(stream: &mut impl Read, length: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    append(stream, length, buffer)
}

/// Like [`fill`], but appends to `buffer`.
///
/// # Errors
/// Those of the stream.
pub(super) fn append(stream: &mut impl Read, length: u64, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.reserve(length.min(1 << 20) as usize);
    let read = stream.take(length).read_to_end(buffer)?;
    Ok(read as u64 == length)
}

/// Skips `length` bytes. Returns whether the stream had them all.
///
/// # Errors
/// Those of the stream.
pub(super) fn skip(stream: &mut impl Read, length: u64) -> io::Result<bool> {
    Ok(io::copy(&mut stream.take(length), &mut io::sink())? == length)
}

//! Removes metadata from JPEGs without decoding them: what is kept is copied byte for byte.
//!
//! Kept are the tables, frame and scan headers and entropy-coded data of T.81, the JFIF header without its thumbnail, the colour
//! profile (APP2 `ICC_PROFILE`), the Adobe marker, and an EXIF segment with the orientation alone, if it is not 1. EXIF, XMP,
//! MPF, IPTC, JFXX, comments, other application segments, bytes between segments, and everything after the EOI marker, such as
//! previews and motion pictures, are left out.

use crate::error::{Error, Result};
use crate::markers::metadata::{EXIF_PREFIX, Metadata, exif_of_orientation};
use crate::markers::segment::{
    self, APP0, APP1, APP2, APP13, APP14, EOI, SOI, SOS, Segment, check_start, segment_at, write_segment,
};
use std::ops::Range;

/// Bytes of the body of a JFIF segment without a thumbnail (JFIF 1.02, page 5): the last two are its width and height.
const JFIF_BYTES: usize = 14;
/// Bytes of the body of an Adobe segment (Adobe Technical Note 5116).
const ADOBE_BYTES: usize = 12;

/// What happens to a segment.
enum Role {
    /// Its marker, length and body are copied.
    Kept,
    /// The JFIF header, of which the first bytes are copied.
    Jfif,
    /// The Adobe marker, of which the first bytes are copied.
    Adobe,
    /// Left out.
    Metadata,
}

/// Returns the next segment at or after byte `from`, which is after a scan if `in_scans`.
///
/// # Errors
/// [`Error::Ends`] if the bytes end before its end; [`Error::Segment`] for a length below 2, and for markers that no image of one
/// frame has: what they mean is not known. After a scan, markers without a segment mean that it is damaged, and that decoders may
/// continue it behind them.
fn next_segment(jpeg: &[u8], from: usize, in_scans: bool) -> Result<Segment<'_>> {
    let marker = segment::next_marker(jpeg, from);
    let (offset, marker) = marker.ok_or(Error::Ends { offset: jpeg.len(), expected: "the next marker" })?;
    match marker {
        0x01 | 0xd0..=0xd7 if !in_scans => segment_at(jpeg, offset, marker),
        0xc0..=0xcf | EOI | SOS..=0xdd | 0xe0..=0xef | 0xfe => segment_at(jpeg, offset, marker),
        _ => {
            let (expected, found) = ("a marker of an image of one frame", marker.into());
            Err(Error::Segment { marker, offset, expected, found })
        }
    }
}

/// Returns the role of a segment other than SOS and EOI.
fn role(s: &Segment<'_>) -> Role {
    match s.marker {
        APP0 if s.body.len() >= JFIF_BYTES && s.body.starts_with(b"JFIF\0") => Role::Jfif,
        APP2 if s.body.starts_with(b"ICC_PROFILE\0") => Role::Kept,
        APP14 if s.body.len() >= ADOBE_BYTES && s.body.starts_with(b"Adobe") => Role::Adobe,
        0xc0..=0xcf | 0xdb..=0xdd => Role::Kept,
        // Application segments and comments, and markers without a segment.
        _ => Role::Metadata,
    }
}

/// Returns a JPEG without its metadata. It has the same pixels, colour profile, density and orientation. A cut image is copied up to its
/// end, except for a segment that is cut.
///
/// # Errors
/// [`Error::NotJpeg`]; [`Error::Ends`] if the bytes end before the first scan; [`Error::Segment`] for segments that break the
/// format, or whose meaning is not known.
pub fn strip_metadata(jpeg: &[u8]) -> Result<Vec<u8>> {
    check_start(jpeg)?;
    let (mut metadata, mut jfif) = (Metadata::default(), None);
    let mut rest = Vec::with_capacity(jpeg.len());
    let (mut at, mut in_scans) = (2, false);
    loop {
        let s = match next_segment(jpeg, at, in_scans) {
            Ok(s) => s,
            Err(Error::Ends { .. }) if in_scans => break,
            Err(error) => return Err(error),
        };
        at = s.end;
        match s.marker {
            EOI if in_scans => {
                rest.extend([0xff, EOI]);
                break;
            }
            EOI => return Err(s.error("a start-of-scan marker", EOI)),
            SOS => {
                at = segment::end_of_scan(jpeg, s.end);
                rest.extend_from_slice(&jpeg[s.offset..at]);
                in_scans = true;
                continue;
            }
            // As for the header: EXIF counts before the first scan.
            APP1 if !in_scans => metadata.add_app1(s.body),
            _ => {}
        }
        match role(&s) {
            Role::Kept => rest.extend_from_slice(&jpeg[s.offset..s.end]),
            Role::Jfif => jfif = jfif.or(Some(&s.body[..JFIF_BYTES - 2])),
            Role::Adobe => write_segment(&mut rest, APP14, &[&s.body[..ADOBE_BYTES]]),
            Role::Metadata => {}
        }
    }
    let mut out = Vec::with_capacity(rest.len() + 64);
    out.extend([0xff, SOI]);
    if let Some(jfif) = jfif {
        write_segment(&mut out, APP0, &[jfif, &[0, 0]]);
    }
    if let Some(exif) = exif_of_orientation(metadata.orientation()) {
        write_segment(&mut out, APP1, &[EXIF_PREFIX, &exif]);
    }
    out.append(&mut rest);
    Ok(out)
}

/// Returns the byte ranges of a JPEG stream inside another file, such as the tile of a TIFF, that hold metadata. Overwriting them
/// with zeros removes the metadata and moves nothing. The orientation of such a stream has no meaning.
///
/// # Errors
/// As [`strip_metadata`]; a stream of tables alone needs no scan.
pub fn metadata_ranges(jpeg: &[u8]) -> Result<Vec<Range<usize>>> {
    check_start(jpeg)?;
    let (mut ranges, mut at, mut in_scans) = (vec![], 2, false);
    loop {
        let s = match next_segment(jpeg, at, in_scans) {
            Ok(s) => s,
            // Tables may lack the end marker.
            Err(Error::Ends { .. }) => return Ok(ranges),
            Err(error) => return Err(error),
        };
        at = s.end;
        let body = s.end - s.body.len();
        match s.marker {
            EOI => {
                ranges.push(s.end..jpeg.len());
                return Ok(ranges);
            }
            SOS => (at, in_scans) = (segment::end_of_scan(jpeg, s.end), true),
            _ => match role(&s) {
                Role::Kept => {}
                Role::Jfif => ranges.push(body + JFIF_BYTES..s.end),
                Role::Adobe => ranges.push(body + ADOBE_BYTES..s.end),
                Role::Metadata => ranges.push(body..s.end),
            },
        }
    }
}

/// Returns the EXIF and XMP metadata of a JPEG, and whether it has a thumbnail elsewhere: in its JFIF, JFXX or Photoshop segments,
/// or further pictures after it (MPF). Reads the segments before the first scan, as far as they are not damaged.
pub fn embedded_metadata(jpeg: &[u8]) -> (Metadata<'_>, bool) {
    let (mut metadata, mut thumbnail, mut at) = (Metadata::default(), false, 2);
    while let Ok(s) = next_segment(jpeg, at, false) {
        at = s.end;
        match s.marker {
            SOS | EOI => break,
            APP0 if s.body.starts_with(b"JFIF\0") => thumbnail |= s.body.len() > JFIF_BYTES,
            APP0 => thumbnail |= s.body.starts_with(b"JFXX\0"),
            APP1 => metadata.add_app1(s.body),
            APP2 => thumbnail |= s.body.starts_with(b"MPF\0"),
            APP13 => thumbnail |= has_photoshop_thumbnail(s.body),
            _ => {}
        }
    }
    (metadata, thumbnail)
}

/// Returns whether Photoshop image resources include a thumbnail: resource 1033 or 1036 (Adobe Photoshop File Formats
/// Specification, "Image Resources").
fn has_photoshop_thumbnail(body: &[u8]) -> bool {
    let thumbnails = [b"8BIM\x04\x09", b"8BIM\x04\x0c"];
    body.starts_with(b"Photoshop 3.0\0")
        && thumbnails.iter().any(|resource| memchr::memmem::find(body, &resource[..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::Decoder;
    use crate::request::Request;

    fn fixture(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// Returns the image with segments inserted after SOI.
    fn with(jpeg: &[u8], segments: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = jpeg[..2].to_vec();
        segments.iter().for_each(|(marker, body)| write_segment(&mut out, *marker, &[body]));
        out.extend_from_slice(&jpeg[2..]);
        out
    }

    fn pixels(jpeg: &[u8]) -> Vec<u8> {
        let mut decoder = Decoder::new();
        let header = crate::Header::parse(jpeg, &crate::Limits::default()).unwrap();
        let mut out = vec![0; 3 * header.width as usize * header.height as usize];
        decoder.decode(jpeg, None, &Request::default(), &mut out, 3 * header.width as usize).unwrap();
        out
    }

    #[test]
    fn removes_every_kind_of_metadata_and_keeps_profile_and_adobe_marker() {
        let plain = strip_metadata(&fixture("progressive-420.jpg")).unwrap();
        let jfif: &[u8] = b"JFIF\0\x01\x02\x01\x00\x48\x00\x48\x01\x01SECRET-JFIF";
        let profile = b"ICC_PROFILE\0\x01\x01the profile";
        let adobe = b"Adobe\0\x64\0\0\0\0\x01SECRET-ADOBE";
        assert_eq!(plain[2..4], [0xff, APP0]);
        let dirty = with(
            &[&plain[..2], &plain[20..]].concat(),
            &[
                (APP1, b"Exif\0\0SECRET-EXIF"),
                (APP0, jfif),
                (APP0, b"JFXX\0\x10SECRET-JFXX"),
                (APP1, b"http://ns.adobe.com/xap/1.0/\0SECRET-XMP"),
                (APP1, b"http://ns.adobe.com/xmp/extension/\0SECRET-EXTENDED"),
                (APP2, b"MPF\0SECRET-MPF"),
                (APP2, profile),
                (0xe5, b"SECRET-APP5"),
                (0xed, b"Photoshop 3.0\0SECRET-IPTC"),
                (0xee, adobe),
                (0xfe, b"SECRET-COMMENT"),
            ],
        );
        // A comment before the second scan, and data after the image.
        let second = memchr::memmem::rfind(&dirty, &[0xff, SOS]).unwrap();
        let mut between = dirty[..second].to_vec();
        write_segment(&mut between, 0xfe, &[b"SECRET-BETWEEN-SCANS"]);
        between.extend_from_slice(&dirty[second..]);
        between.extend_from_slice(b"SECRET-AFTER-THE-IMAGE");
        let stripped = strip_metadata(&between).unwrap();
        assert_eq!(memchr::memmem::find(&stripped, b"SECRET"), None);
        assert!(memchr::memmem::find(&stripped, profile).is_some());
        assert!(memchr::memmem::find(&stripped, &adobe[..ADOBE_BYTES]).is_some());
        // The density, and no thumbnail.
        assert_eq!(stripped[2..20], *b"\xff\xe0\0\x10JFIF\0\x01\x02\x01\x00\x48\x00\x48\0\0");
        assert_eq!(pixels(&stripped), pixels(&between));
        assert_eq!(strip_metadata(&stripped).unwrap(), stripped);
    }

    #[test]
    fn keeps_the_orientation_alone() {
        let plain = fixture("progressive-420.jpg");
        let exif = [EXIF_PREFIX, &exif_of_orientation(6).unwrap(), b"SECRET"].concat();
        let xmp = b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation=\"8\" SECRET/>";
        for (body, orientation) in [(&exif[..], 6), (xmp, 8)] {
            let dirty = with(&plain, &[(APP1, body)]);
            let stripped = strip_metadata(&dirty).unwrap();
            assert_eq!(crate::FrameInfo::parse(&dirty).unwrap().orientation, orientation);
            assert_eq!(crate::FrameInfo::parse(&stripped).unwrap().orientation, orientation);
            assert_eq!(memchr::memmem::find(&stripped, b"SECRET"), None);
            assert_eq!(strip_metadata(&stripped).unwrap(), stripped);
        }
    }

    #[test]
    fn an_orientation_after_the_first_scan_does_not_count() {
        let plain = fixture("progressive-420.jpg");
        let second = memchr::memmem::rfind(&plain, &[0xff, SOS]).unwrap();
        let mut late = plain[..second].to_vec();
        write_segment(&mut late, APP1, &[EXIF_PREFIX, &exif_of_orientation(6).unwrap()]);
        late.extend_from_slice(&plain[second..]);
        assert_eq!(crate::FrameInfo::parse(&late).unwrap().orientation, 1);
        assert_eq!(strip_metadata(&late), strip_metadata(&plain));
    }

    #[test]
    fn finds_thumbnails_outside_of_exif() {
        let plain = fixture("progressive-420.jpg");
        let found = |marker, body: &[u8]| embedded_metadata(&with(&plain, &[(marker, body)])).1;
        assert!(!embedded_metadata(&plain).1);
        assert!(found(APP0, b"JFIF\0\x01\x02\x01\x00\x48\x00\x48\x01\x01abc"));
        assert!(found(APP0, b"JFXX\0\x10abc"));
        assert!(found(APP2, b"MPF\0abc"));
        assert!(found(APP13, b"Photoshop 3.0\x008BIM\x04\x0cabc"));
        for (marker, body) in [(APP13, &b"Photoshop 3.0\x008BIM\x04\x04abc"[..]), (APP2, b"ICC_PROFILE\0abc")] {
            assert!(!found(marker, body));
        }
    }

    #[test]
    fn copies_a_cut_image_up_to_its_end() {
        let whole = fixture("progressive-420.jpg");
        let cut = &whole[..whole.len() * 2 / 3];
        let stripped = strip_metadata(&with(cut, &[(0xfe, b"SECRET")])).unwrap();
        assert_eq!(stripped, strip_metadata(cut).unwrap());
        assert!(stripped.ends_with(&cut[cut.len() - 64..]));
    }

    #[test]
    fn refuses_restart_markers_behind_other_segments() {
        // Decoders look for the next restart marker in a damaged scan.
        let mut damaged = fixture("restart-rows-420.jpg");
        let second = memchr::memmem::find(&damaged, &[0xff, 0xd1]).unwrap();
        let first = memchr::memmem::find(&damaged, &[0xff, 0xd0]).unwrap();
        damaged[first + 1..first + 4].copy_from_slice(&[0xfe, 0, 2]);
        assert!(strip_metadata(&fixture("restart-rows-420.jpg")).is_ok());
        let expected = Err(Error::Segment {
            marker: 0xd1,
            offset: second,
            expected: "a marker of an image of one frame",
            found: 0xd1,
        });
        assert_eq!(strip_metadata(&damaged), expected);
    }

    #[test]
    fn refuses_markers_of_unknown_meaning() {
        for marker in [0x02, 0xbf, SOI, 0xde, 0xdf, 0xf0, 0xfd] {
            let dirty = with(&fixture("progressive-420.jpg"), &[(marker, b"SECRET")]);
            assert!(matches!(strip_metadata(&dirty), Err(Error::Segment { marker: found, .. }) if found == marker));
        }
    }
}

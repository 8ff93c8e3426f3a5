//! The orientation in EXIF and XMP metadata: the one home of this rule, for the images of every format and for transcoding. The
//! orientation is what Pillow's `exif_transpose` finds.

use super::exif;
use memchr::memmem;
use std::borrow::Cow;

/// The EXIF and XMP metadata of an image, as far as they matter for its orientation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// EXIF: a TIFF or BigTIFF file, which `Exif\0\0` may precede; or a TIFF image itself.
    pub exif: Option<Cow<'a, [u8]>>,
    /// XMP: a text.
    pub xmp: Option<Cow<'a, [u8]>>,
}

impl<'a> Metadata<'a> {
    /// Adds the body of an APP1 segment of a JPEG. EXIF may be continued in further segments; of several XMP texts the last
    /// counts.
    pub(crate) fn add_app1(&mut self, body: &'a [u8]) {
        if let Some(part) = body.strip_prefix(EXIF_PREFIX) {
            match &mut self.exif {
                None => self.exif = Some(Cow::Borrowed(body)),
                Some(exif) => exif.to_mut().extend_from_slice(part),
            }
        } else if let Some(text) = body.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0") {
            self.xmp = Some(Cow::Borrowed(text));
        }
    }

    /// Returns the EXIF metadata as a TIFF file.
    fn tiff(&self) -> Option<&[u8]> {
        let stripped = |exif| <[u8]>::strip_prefix(exif, EXIF_PREFIX).unwrap_or(exif);
        // Some writers put the prefix twice.
        self.exif.as_deref().map(|exif| stripped(stripped(exif)))
    }

    /// Returns the orientation, 1 to 8: that of EXIF, if it has an orientation tag, otherwise that of XMP, otherwise 1. Invalid
    /// values count as 1.
    pub fn orientation(&self) -> u8 {
        let exif = self.tiff().and_then(exif::orientation);
        exif.or_else(|| self.xmp.as_deref().and_then(xmp_orientation)).unwrap_or(1)
    }

    /// Returns whether the metadata have a latitude or a longitude: in EXIF those of the camera or of the destination, or in XMP.
    pub fn has_position(&self) -> bool {
        let in_xmp = |xmp: &[u8]| {
            [&b"exif:GPSLatitude"[..], b"exif:GPSLongitude"].iter().any(|name| memmem::find(xmp, name).is_some())
        };
        self.tiff().is_some_and(exif::has_position) || self.xmp.as_deref().is_some_and(in_xmp)
    }

    /// Returns whether the metadata have a smaller copy of the image: in the second directory of EXIF, or in XMP.
    pub fn has_thumbnail(&self) -> bool {
        let in_xmp = |xmp: &[u8]| memmem::find(xmp, b"xmpGImg:image").is_some();
        self.tiff().is_some_and(exif::has_thumbnail) || self.xmp.as_deref().is_some_and(in_xmp)
    }
}

/// Returns EXIF metadata with nothing but an orientation, 2 to 8: a TIFF header, and a directory of one entry, tag 0x0112, one
/// SHORT. Returns `None` for 1, which needs no metadata.
#[must_use]
pub fn exif_of_orientation(orientation: u8) -> Option<[u8; 26]> {
    let mut exif = *b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0";
    exif[18] = orientation;
    (orientation != 1).then_some(exif)
}

/// What precedes EXIF metadata in a JPEG, and, against their specifications, in files of other formats.
pub(crate) const EXIF_PREFIX: &[u8] = b"Exif\0\0";

/// Returns the orientation in an XMP text: a digit in an attribute or an element (XMP part 1, 7.4), found without parsing the text.
fn xmp_orientation(xmp: &[u8]) -> Option<u8> {
    const NAME: &[u8] = b"tiff:Orientation";
    memmem::find_iter(xmp, NAME).find_map(|at| {
        let rest = &xmp[at + NAME.len()..];
        let value = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?;
        let digit = value.first().filter(|digit| digit.is_ascii_digit())? - b'0';
        Some(if matches!(digit, 1..=8) { digit } else { 1 })
    })
}

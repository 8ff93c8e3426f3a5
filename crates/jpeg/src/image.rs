//! An image whose header is parsed.

use crate::error::Result;
use crate::markers::header::{Header, Limits};
use crate::markers::parser::{Parser, ScanHeader};

/// The bytes of a JPEG with its parsed header, so that what needs the header (planning, memory accounting, decoding) parses
/// it only once. About 1.5 KiB; borrows the bytes and allocates nothing.
#[derive(Clone)]
pub struct ParsedImage<'a> {
    pub(crate) parser: Parser<'a>,
    pub(crate) scan: ScanHeader,
}

impl<'a> ParsedImage<'a> {
    /// Parses the segments of `jpeg` up to its first scan.
    ///
    /// # Errors
    /// As [`Header::parse`].
    pub fn parse(jpeg: &'a [u8], limits: &Limits) -> Result<ParsedImage<'a>> {
        let (parser, scan) = Parser::start(jpeg, limits, false)?;
        Ok(ParsedImage { parser, scan })
    }

    /// As [`ParsedImage::parse`], but two or four components have no colour space ([`Color::Samples`](crate::Color::Samples)):
    /// the pixels that are decoded are their samples, as many bytes as components. For JPEG inside other formats, which say what
    /// the components are.
    ///
    /// # Errors
    /// As [`Header::parse`].
    pub fn parse_samples(jpeg: &'a [u8], limits: &Limits) -> Result<ParsedImage<'a>> {
        let (parser, scan) = Parser::start(jpeg, limits, true)?;
        Ok(ParsedImage { parser, scan })
    }

    /// The image's header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.parser.header
    }

    /// The image's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.parser.jpeg
    }
}

impl std::fmt::Debug for ParsedImage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParsedImage").field("header", self.header()).finish_non_exhaustive()
    }
}

impl Header {
    /// Parses the header of `jpeg`, up to its first scan.
    ///
    /// # Errors
    /// [`NotJpeg`](crate::Error::NotJpeg), [`Ends`](crate::Error::Ends) or [`Segment`](crate::Error::Segment) for bytes that
    /// break the format, [`Limit`](crate::Error::Limit) for an image beyond `limits`, and
    /// [`Unsupported`](crate::Error::Unsupported) for a kind that this crate does not decode.
    pub fn parse(jpeg: &[u8], limits: &Limits) -> Result<Header> {
        Ok(*ParsedImage::parse(jpeg, limits)?.header())
    }
}

//! Tags and their values, by the names of TIFF 6.0 and its technical notes.

/// Tags of a directory.
pub(crate) mod tag {
    pub(crate) const NEW_SUBFILE_TYPE: u16 = 254;
    pub(crate) const SUBFILE_TYPE: u16 = 255;
    pub(crate) const IMAGE_WIDTH: u16 = 256;
    pub(crate) const IMAGE_LENGTH: u16 = 257;
    pub(crate) const BITS_PER_SAMPLE: u16 = 258;
    pub(crate) const COMPRESSION: u16 = 259;
    pub(crate) const PHOTOMETRIC_INTERPRETATION: u16 = 262;
    pub(crate) const FILL_ORDER: u16 = 266;
    pub(crate) const STRIP_OFFSETS: u16 = 273;
    pub(crate) const ORIENTATION: u16 = 274;
    pub(crate) const SAMPLES_PER_PIXEL: u16 = 277;
    pub(crate) const ROWS_PER_STRIP: u16 = 278;
    pub(crate) const STRIP_BYTE_COUNTS: u16 = 279;
    pub(crate) const PLANAR_CONFIGURATION: u16 = 284;
    pub(crate) const T4_OPTIONS: u16 = 292;
    pub(crate) const PREDICTOR: u16 = 317;
    pub(crate) const COLOR_MAP: u16 = 320;
    pub(crate) const TILE_WIDTH: u16 = 322;
    pub(crate) const TILE_LENGTH: u16 = 323;
    pub(crate) const TILE_OFFSETS: u16 = 324;
    pub(crate) const TILE_BYTE_COUNTS: u16 = 325;
    pub(crate) const SUB_IFDS: u16 = 330;
    pub(crate) const EXTRA_SAMPLES: u16 = 338;
    pub(crate) const SAMPLE_FORMAT: u16 = 339;
    pub(crate) const JPEG_TABLES: u16 = 347;
    pub(crate) const YCBCR_COEFFICIENTS: u16 = 529;
    pub(crate) const YCBCR_SUBSAMPLING: u16 = 530;
    pub(crate) const REFERENCE_BLACK_WHITE: u16 = 532;
    pub(crate) const XMP: u16 = 700;
    pub(crate) const EXIF_IFD: u16 = 34665;
    pub(crate) const ICC_PROFILE: u16 = 34675;
    pub(crate) const GPS_IFD: u16 = 34853;
    pub(crate) const INTEROPERABILITY_IFD: u16 = 40965;
}

/// Values of Compression.
pub(crate) mod compression {
    pub(crate) const NONE: u64 = 1;
    pub(crate) const CCITT_RLE: u64 = 2;
    pub(crate) const FAX3: u64 = 3;
    pub(crate) const FAX4: u64 = 4;
    pub(crate) const LZW: u64 = 5;
    pub(crate) const OLD_JPEG: u64 = 6;
    pub(crate) const JPEG: u64 = 7;
    pub(crate) const DEFLATE: u64 = 8;
    pub(crate) const PACK_BITS: u64 = 32773;
    pub(crate) const OLD_DEFLATE: u64 = 32946;
    pub(crate) const LERC: u64 = 34887;
    pub(crate) const LZMA: u64 = 34925;
    pub(crate) const ZSTD: u64 = 50000;
    pub(crate) const WEBP: u64 = 50001;
}

/// Values of PhotometricInterpretation.
pub(super) mod photometric {
    pub(crate) const WHITE_IS_ZERO: u64 = 0;
    pub(crate) const BLACK_IS_ZERO: u64 = 1;
    pub(crate) const RGB: u64 = 2;
    pub(crate) const PALETTE: u64 = 3;
    pub(crate) const MASK: u64 = 4;
    pub(crate) const CMYK: u64 = 5;
    pub(crate) const YCBCR: u64 = 6;
    pub(crate) const CIE_LAB: u64 = 8;
    pub(crate) const ICC_LAB: u64 = 9;
    pub(crate) const ITU_LAB: u64 = 10;
}

/// Values of SampleFormat.
pub(super) mod sample_format {
    pub(crate) const UNSIGNED: u64 = 1;
    pub(crate) const SIGNED: u64 = 2;
    pub(crate) const FLOAT: u64 = 3;
    pub(crate) const UNDEFINED: u64 = 4;
}

/// Values of Predictor.
pub(super) mod predictor {
    pub(crate) const HORIZONTAL: u64 = 2;
    pub(crate) const FLOATING_POINT: u64 = 3;
}

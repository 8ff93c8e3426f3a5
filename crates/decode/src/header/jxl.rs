//! JPEG XL (ISO/IEC 18181-1, annexes A and D): size and channels of a codestream, bare or in the boxes of 18181-2.
//!
//! Decoders apply the orientation in the codestream, so this returns the size of the oriented image and orientation 1.

use super::boxes::boxes;
use crate::format::Format;
use crate::image_info::ImageInfo;
#[cfg(feature = "jxl")]
use std::borrow::Cow;

pub(super) fn read(bytes: &[u8]) -> Option<ImageInfo> {
    let codestream = match bytes {
        [0xFF, 0x0A, ..] => bytes,
        _ => boxes(bytes).find_map(|(kind, payload)| match &kind {
            b"jxlc" => Some(payload),
            // A part of the codestream, after a 4-byte part number.
            b"jxlp" => payload.get(4..),
            _ => None,
        })?,
    };
    let mut bits = Bits { bytes: codestream.strip_prefix(&[0xFF, 0x0A])?, at: 0 };
    let (width, height) = bits.size()?;
    let (mut orientation, mut channels) = (1, 3);
    if !bits.flag()? {
        if bits.flag()? {
            orientation = bits.read(3)? + 1;
            bits.intrinsic_preview_animation()?;
        }
        bits.depth()?;
        bits.flag()?;
        let extra = bits.choice([(0, 0), (1, 0), (2, 4), (1, 12)])?;
        let mut alpha = false;
        for _ in 0..extra {
            alpha |= bits.extra_channel()?;
        }
        bits.flag()?;
        // Colour encoding: the colour space, of which 1 is grey, follows unless the encoding is the default or an ICC profile.
        let grey = !bits.flag()? && !bits.flag()? && bits.enumerated()? == 1;
        channels = if grey { 1 } else { 3 } + u8::from(alpha);
    }
    let (width, height) = if orientation > 4 { (height, width) } else { (width, height) };
    Some(ImageInfo { format: Format::Jxl, width, height, channels, orientation: 1 })
}

/// Returns the codestream of a file: the file itself, or the parts in the boxes of a container.
#[cfg(feature = "jxl")]
pub(crate) fn codestream(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.starts_with(&[0xFF, 0x0A]) {
        return Cow::Borrowed(bytes);
    }
    let mut parts = boxes(bytes).filter_map(|(kind, payload)| match &kind {
        b"jxlc" => Some(payload),
        b"jxlp" => payload.get(4..),
        _ => None,
    });
    let first = parts.next().unwrap_or_default();
    match parts.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(parts).collect::<Vec<_>>().concat()),
    }
}

/// Bit reader, from the least significant bit of each byte.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn read(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for i in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value |= u32::from(byte >> (self.at % 8) & 1) << i;
            self.at += 1;
        }
        Some(value)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.read(1)? == 1)
    }

    /// Reads a U32 field: two bits select a constant and the number of bits to add.
    fn choice(&mut self, choices: [(u32, usize); 4]) -> Option<u32> {
        let (constant, count) = choices[self.read(2)? as usize];
        self.read(count)?.checked_add(constant)
    }

    fn enumerated(&mut self) -> Option<u32> {
        self.choice([(0, 0), (1, 0), (2, 4), (18, 6)])
    }

    fn size(&mut self) -> Option<(u32, u32)> {
        let small = self.flag()?;
        let side = |bits: &mut Self| match small {
            true => Some((bits.read(5)? + 1) * 8),
            false => bits.choice([(1, 9), (1, 13), (1, 18), (1, 30)]),
        };
        let height = side(self)?;
        let ratio = self.read(3)?;
        let width = if ratio == 0 { side(self)? } else { scaled(height, ratio)? };
        Some((width, height))
    }

    fn intrinsic_preview_animation(&mut self) -> Option<()> {
        if self.flag()? {
            self.size()?;
        }
        if self.flag()? {
            let eighths = self.flag()?;
            let side = |bits: &mut Self| match eighths {
                true => bits.choice([(16, 0), (32, 0), (1, 5), (33, 9)]),
                false => bits.choice([(1, 6), (65, 8), (321, 10), (1345, 12)]),
            };
            side(self)?;
            if self.read(3)? == 0 {
                side(self)?;
            }
        }
        if self.flag()? {
            self.choice([(100, 0), (1000, 0), (1, 10), (1, 30)])?;
            self.choice([(1, 0), (1001, 0), (1, 8), (1, 10)])?;
            self.choice([(0, 0), (0, 3), (0, 16), (0, 32)])?;
            self.flag()?;
        }
        Some(())
    }

    fn depth(&mut self) -> Option<()> {
        if self.flag()? {
            self.choice([(32, 0), (16, 0), (24, 0), (1, 6)])?;
            self.read(4)?;
        } else {
            self.choice([(8, 0), (10, 0), (12, 0), (1, 6)])?;
        }
        Some(())
    }

    /// Reads the description of an extra channel and returns whether it is alpha.
    fn extra_channel(&mut self) -> Option<bool> {
        if self.flag()? {
            return Some(true);
        }
        let kind = self.enumerated()?;
        self.depth()?;
        self.choice([(0, 0), (3, 0), (4, 0), (1, 3)])?;
        let name = self.choice([(0, 0), (0, 4), (16, 5), (48, 10)])?;
        self.at = self.at.checked_add(8 * name as usize)?;
        match kind {
            0 => drop(self.flag()?),
            // A spot colour: red, green, blue and solidity.
            2 => drop(self.read(16).and(self.read(16)).and(self.read(16)).and(self.read(16))?),
            5 => drop(self.choice([(1, 0), (0, 2), (3, 4), (19, 8)])?),
            _ => {}
        }
        Some(kind == 0)
    }
}

/// Returns the width for a height and the index of one of the predefined aspect ratios.
fn scaled(height: u32, ratio: u32) -> Option<u32> {
    let (over, under) = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)][ratio as usize - 1];
    u32::try_from(u64::from(height) * over / under).ok()
}

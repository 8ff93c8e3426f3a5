//! Where a record lies, its CRCs, and its bytes.

use crate::app::SplitView;
use crate::text;
use maud::{Markup, html};
use shardtool_format::checksum::{crc32c, mask};
use shardtool_format::frame::{FOOTER_BYTES, HEADER_BYTES};
use shardtool_read::Record;

/// Bytes that are shown at the start and at the end of a frame, and around the bytes that cannot be read.
const SHOWN: usize = 256;
/// Largest frame that is read once more for its CRCs and bytes, in bytes.
const MAX_FRAME: u64 = 1 << 26;

/// Renders the place of a record in its shard, and a hex dump. `record` is `None` if it is damaged.
pub(crate) fn dump(view: &SplitView, id: u64, record: Option<&Record>) -> Markup {
    let Ok((number, row)) = view.split.locate(id) else { return html! {} };
    let entry = &view.split.entry().shards[number];
    let shard = match view.split.shard(number) {
        Ok(shard) => shard,
        Err(error) => {
            return html! { section.card { h2 { "Where it lies" } p { (text::printable_text(&error.to_string())) } } };
        }
    };
    let frame = shard.frame(row);
    let mut bytes = vec![];
    let mut problem = None;
    if let Ok(range) = &frame {
        if range.end - range.start > MAX_FRAME {
            problem = Some("the frame is too long to be shown".to_owned());
        } else if let Err(error) = shard.bytes().read_into(range.clone(), &mut bytes) {
            bytes.clear();
            problem = Some(error.to_string());
        }
    }
    let crcs = Crcs::of(&bytes);
    html! {
        section.card {
            h2 { "Where it lies" }
            dl.features {
                dt { "shard" } dd { (text::printable_text(&entry.file)) }
                dt { "row" } dd { (text::count(row)) " of " (text::count(entry.records)) }
                @match &frame {
                    Ok(range) => {
                        dt { "offset" } dd { (text::count(range.start)) " (0x" (format!("{:x}", range.start)) ")" }
                        dt { "bytes" } dd { (text::count(range.end - range.start)) }
                    }
                    Err(error) => { dt { "offset" } dd { (text::printable_text(&error.to_string())) } }
                }
                @if let Some(crcs) = &crcs {
                    dt { "CRC of length" } dd { (crcs.length.shown()) }
                    dt { "CRC of data" } dd { (crcs.data.shown()) }
                }
                @if let Some(problem) = &problem { dt { "problem" } dd { (text::printable_text(problem)) } }
            }
            @if !bytes.is_empty() {
                @let start = frame.as_ref().map_or(0, |range| range.start);
                details open[record.is_none()] {
                    summary { "Bytes of the frame" }
                    (hex(&bytes, start))
                }
            }
        }
    }
}

/// The CRCs of a frame: as stored, and as computed. Masked, as TFRecord stores them.
struct Crcs {
    length: Crc,
    data: Crc,
}

struct Crc {
    stored: u32,
    computed: u32,
}

impl Crc {
    fn shown(&self) -> Markup {
        html! {
            code { (format!("{:08x}", self.stored)) }
            @if self.stored == self.computed {
                span.good { " good" }
            } @else {
                span.bad { " damaged: the bytes have " code { (format!("{:08x}", self.computed)) } }
            }
        }
    }
}

impl Crcs {
    fn of(frame: &[u8]) -> Option<Self> {
        let stored =
            |at: usize| frame.get(at..).and_then(|rest| rest.first_chunk()).map(|crc| u32::from_le_bytes(*crc));
        let end = frame.len().checked_sub(FOOTER_BYTES).filter(|end| *end >= HEADER_BYTES)?;
        let length = Crc { stored: stored(8)?, computed: mask(crc32c(&frame[..8])) };
        let data = Crc { stored: stored(end)?, computed: mask(crc32c(&frame[HEADER_BYTES..end])) };
        Some(Crcs { length, data })
    }
}

fn hex(bytes: &[u8], start: u64) -> Markup {
    let tail = bytes.len().saturating_sub(SHOWN).max(SHOWN) & !15;
    html! {
        pre.hex tabindex="0" role="region" aria-label="Bytes in hexadecimal" {
            (lines(&bytes[..bytes.len().min(SHOWN)], start))
            @if tail < bytes.len() {
                @if tail > SHOWN { "   … " (text::count((tail - SHOWN) as u64)) " bytes …\n" }
                (lines(&bytes[tail..], start + tail as u64))
            }
        }
    }
}

fn lines(bytes: &[u8], start: u64) -> String {
    let mut out = String::new();
    for (i, line) in bytes.chunks(16).enumerate() {
        out.push_str(&format!("{:08x}  ", start + 16 * i as u64));
        for at in 0..16 {
            match line.get(at) {
                Some(byte) => out.push_str(&format!("{byte:02x} ")),
                None => out.push_str("   "),
            }
        }
        out.push(' ');
        out.extend(line.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }));
        out.push('\n');
    }
    out
}

//! Decodes fax data: ITU-T T.4 (Group 3, one- and two-dimensional), T.6 (Group 4) and the run lengths of TIFF 6.0 (compression 2).
//!
//! | module | content |
//! |---|---|
//! | `codes` | lookup tables and the reader of bits |
//! | `runs` | the runs of a row |
//!
//! Rows of a wrong length are decoded as in libtiff, which warns about them: cut at the width, or white after their end. Invalid
//! codes and data that ends early are errors; libtiff reports them and continues with the next row.

mod codes;
mod runs;

use codes::{BitReader, Change, END_OF_LINE_ZEROS, EndOfData, Run};
use runs::Runs;

/// The coding of fax data.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Coding {
    /// Compression 2: rows begin at bytes, and have no end-of-line codes.
    RunLength,
    /// Compression 3: an end-of-line code precedes each row. With `two_dimensional`, the bit after it says how the row is coded.
    Group3 { two_dimensional: bool },
    /// Compression 4: every row is two-dimensional, and there are no end-of-line codes.
    Group4,
}

impl Coding {
    fn has_reference(self) -> bool {
        !matches!(self, Coding::RunLength | Coding::Group3 { two_dimensional: false })
    }
}

/// Damage in a row.
#[derive(Debug, thiserror::Error)]
enum RowError {
    #[error("the data ends early")]
    EndOfData,
    #[error("invalid code")]
    Code,
    #[error("more runs than pixels")]
    TooManyRuns,
    #[error("uncompressed mode, which is not supported")]
    Uncompressed,
}

impl From<EndOfData> for RowError {
    fn from(_: EndOfData) -> Self {
        RowError::EndOfData
    }
}

/// Damaged fax data.
#[derive(Debug, thiserror::Error)]
#[error("damaged fax data in row {row} of a strip or tile")]
pub(super) struct FaxError {
    row: usize,
    source: RowError,
}

/// Returns an upper bound of the bytes that decoding rows of `width` pixels takes in addition to data and rows.
pub(super) fn scratch_bytes(width: u32) -> u64 {
    let runs = 2 * Runs::most(width, true) as u64 * size_of::<i64>() as u64;
    runs + size_of::<[u64; 1 << 14]>() as u64
}

/// Decodes rows of `width` pixels into `out`, `row_bytes` each: one bit per pixel, set if it is black.
pub(super) fn decode(
    data: &[u8],
    coding: Coding,
    width: u32,
    row_bytes: usize,
    out: &mut [u8],
) -> Result<(), FaxError> {
    let two_dimensional = coding.has_reference();
    let runs = || Runs::new(width, two_dimensional);
    let mut decoder = Decoder { bits: BitReader::new(data), coding, runs: runs(), end_of_line: false };
    let mut above = two_dimensional.then(runs);
    if let Some(above) = &mut above {
        // The row above the first one is white.
        above.end(width.into()).map_err(|source| FaxError { row: 0, source })?;
    }
    out.fill(0);
    for (row, pixels) in out.chunks_exact_mut(row_bytes).enumerate() {
        decoder.row(above.as_ref()).map_err(|source| FaxError { row, source })?;
        decoder.runs.fill(pixels);
        if let Some(above) = &mut above {
            std::mem::swap(above, &mut decoder.runs);
        }
    }
    Ok(())
}

struct Decoder<'a> {
    bits: BitReader<'a>,
    coding: Coding,
    runs: Runs,
    /// Whether the zeros of an end-of-line code have been read.
    end_of_line: bool,
}

impl Decoder<'_> {
    /// Decodes the runs of the next row.
    fn row(&mut self, above: Option<&Runs>) -> Result<(), RowError> {
        self.runs.clear();
        match self.coding {
            Coding::RunLength => {
                self.end_of_line = false;
                self.one_dimensional()?;
                self.bits.align();
            }
            Coding::Group3 { two_dimensional } => {
                self.find_end_of_line()?;
                let one_dimensional = !two_dimensional || {
                    let tag = self.bits.peek(1)?;
                    self.bits.consume(1);
                    tag == 1
                };
                match above {
                    Some(above) if !one_dimensional => self.two_dimensional(above.lengths())?,
                    _ => self.one_dimensional()?,
                }
            }
            Coding::Group4 => {
                self.two_dimensional(above.map_or(&[][..], Runs::lengths))?;
                if self.end_of_line {
                    return Err(RowError::EndOfData);
                }
            }
        }
        Ok(())
    }

    /// Reads up to and including the next end-of-line code: at least 11 zeros (more if the code ends at a byte) and a one.
    fn find_end_of_line(&mut self) -> Result<(), RowError> {
        if !std::mem::take(&mut self.end_of_line) {
            while self.bits.peek(END_OF_LINE_ZEROS)? != 0 {
                self.bits.consume(1);
            }
        }
        loop {
            let byte = self.bits.peek(8)?;
            if byte != 0 {
                self.bits.consume((byte as u8).leading_zeros() + 1);
                return Ok(());
            }
            self.bits.consume(8);
        }
    }

    /// Decodes white and black runs in turn.
    fn one_dimensional(&mut self) -> Result<(), RowError> {
        while !self.runs.is_complete() {
            let code = if self.runs.is_black() { self.bits.black()? } else { self.bits.white()? };
            match code {
                Run::MakeUp(pixels) => {
                    self.runs.extend(pixels.into());
                    self.rest_of_run()?;
                }
                Run::Terminating(pixels) => self.runs.end(pixels.into())?,
                Run::EndOfLine => self.end_of_line = true,
                Run::Invalid => return Err(RowError::Code),
            }
            if self.end_of_line {
                break;
            }
            if !self.runs.is_black() && !self.runs.is_complete() {
                self.runs.remove_empty_pair();
            }
        }
        self.runs.clean_up()
    }

    /// Decodes the codes of a run after the first one.
    fn rest_of_run(&mut self) -> Result<(), RowError> {
        loop {
            let code = if self.runs.is_black() { self.bits.black()? } else { self.bits.white()? };
            match code {
                Run::MakeUp(pixels) => self.runs.extend(pixels.into()),
                Run::Terminating(pixels) => return self.runs.end(pixels.into()),
                Run::EndOfLine => {
                    self.end_of_line = true;
                    return Ok(());
                }
                Run::Invalid => return Err(RowError::Code),
            }
        }
    }

    /// Decodes changes relative to the runs of the row above (T.4, 4.2; T.6, 2.2).
    fn two_dimensional(&mut self, above: &[i64]) -> Result<(), RowError> {
        let mut reference = Reference { runs: above, next: 0, change: 0 };
        reference.advance();
        while !self.runs.is_complete() {
            let code = self.bits.change()?;
            if matches!(code, Change::Pass | Change::Vertical(_)) && !self.runs.is_empty() {
                reference.pass(self.runs.position, self.runs.width());
            }
            match code {
                // After the last change of the row above there is nothing to pass.
                Change::Pass if reference.change >= self.runs.width() => return Err(RowError::Code),
                Change::Pass => {
                    reference.advance();
                    self.runs.extend(reference.change - self.runs.position);
                    reference.advance();
                }
                Change::Horizontal => {
                    for _ in 0..2 {
                        self.horizontal()?;
                    }
                    reference.pass(self.runs.position, self.runs.width());
                }
                Change::Vertical(distance) => {
                    let to = reference.change + distance;
                    if to < self.runs.position {
                        return Err(RowError::Code);
                    }
                    self.runs.end(to - self.runs.position)?;
                    if distance < 0 { reference.retreat() } else { reference.advance() }
                }
                Change::Extension => return Err(RowError::Uncompressed),
                Change::EndOfLine => {
                    self.runs.end_row_early()?;
                    if self.bits.peek(4)? != 0 {
                        return Err(RowError::Code);
                    }
                    self.bits.consume(4);
                    self.end_of_line = true;
                    return self.runs.clean_up();
                }
                Change::Invalid => return Err(RowError::Code),
            }
        }
        if self.runs.pending != 0 {
            self.runs.end(0)?;
        }
        self.runs.clean_up()
    }

    /// Decodes a run of horizontal mode.
    fn horizontal(&mut self) -> Result<(), RowError> {
        loop {
            let code = if self.runs.is_black() { self.bits.black()? } else { self.bits.white()? };
            match code {
                Run::MakeUp(pixels) => self.runs.extend(pixels.into()),
                Run::Terminating(pixels) => return self.runs.end(pixels.into()),
                Run::EndOfLine | Run::Invalid => return Err(RowError::Code),
            }
        }
    }
}

/// The position of the next change in the row above (b1 of T.4).
struct Reference<'r> {
    runs: &'r [i64],
    /// The run after the change.
    next: usize,
    change: i64,
}

impl Reference<'_> {
    /// Goes to the next change. After the last run there are empty ones.
    fn advance(&mut self) {
        self.change += self.runs.get(self.next).copied().unwrap_or(0);
        self.next += 1;
    }

    /// Goes to the previous change.
    fn retreat(&mut self) {
        self.next -= 1;
        self.change -= self.runs.get(self.next).copied().unwrap_or(0);
    }

    /// Goes to the first change of the same colour to the right of `position`, or to the end of the row.
    fn pass(&mut self, position: i64, width: i64) {
        while self.change <= position && self.change < width {
            self.advance();
            self.advance();
        }
    }
}

//! The permitted order of scans (ITU-T T.81, annex G), and which bits of the coefficients they have delivered.

use crate::error::{Error, Result};
use crate::markers::header::{Header, Process};
use crate::markers::parser::ScanHeader;
use crate::markers::segment::SOS;

/// For each coefficient of each component, the number of low bits that are not known yet; `None` before its first scan.
pub(crate) struct Progress {
    known: [[Option<u8>; 64]; 3],
    components: usize,
}

impl Progress {
    pub(crate) fn new(components: usize) -> Progress {
        Progress { known: [[None; 64]; 3], components }
    }

    /// Records a scan.
    ///
    /// # Errors
    /// [`Error::Segment`] if it does not continue the scans before it.
    pub(crate) fn admit(&mut self, header: &Header, scan: &ScanHeader) -> Result<()> {
        for part in scan.components() {
            let known = &mut self.known[part.index];
            let fail = |expected, found: u8| Error::Segment {
                marker: SOS,
                offset: scan.offset,
                expected,
                found: found.into(),
            };
            if header.process == Process::Progressive && scan.band.0 > 0 && known[0].is_none() {
                return Err(fail("a DC scan of the component before its AC scans", scan.band.0));
            }
            let (high, low) = scan.bits;
            for bits in &mut known[usize::from(scan.band.0)..=usize::from(scan.band.1)] {
                let continues = match *bits {
                    None => high == 0,
                    Some(unknown) => high != 0 && high == unknown,
                };
                if !continues {
                    return Err(fail("a scan that continues the bits known so far", high));
                }
                *bits = Some(low);
            }
        }
        Ok(())
    }

    /// Whether all bits of all coefficients are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.known[..self.components].iter().flatten().all(|b| *b == Some(0))
    }
}

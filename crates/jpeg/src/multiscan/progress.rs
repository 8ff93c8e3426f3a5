//! Which bits of the coefficients the scans so far have delivered (ITU-T T.81, annex G).

use crate::markers::header::{Header, MAX_COMPONENTS, Process};
use crate::markers::parser::ScanHeader;
use crate::markers::standard::ZIGZAG;

/// The first AC coefficients, in zigzag order, that libjpeg estimates if they are not known.
const ESTIMATED: std::ops::Range<usize> = 1..10;

/// For each coefficient of each component, the number of low bits that are not known yet; `None` before its first scan.
pub(crate) struct Progress {
    unknown: [[Option<u8>; 64]; MAX_COMPONENTS],
    components: usize,
}

impl Progress {
    pub(crate) fn new(components: usize) -> Progress {
        Progress { unknown: [[None; 64]; MAX_COMPONENTS], components }
    }

    /// Records a scan. As in libjpeg, scans may come in any order and repeat what is known.
    pub(crate) fn record(&mut self, scan: &ScanHeader) {
        for part in scan.components() {
            self.unknown[part.index][usize::from(scan.band.0)..=usize::from(scan.band.1)].fill(Some(scan.bits.1));
        }
    }

    /// Whether all bits of all coefficients are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.unknown[..self.components].iter().flatten().all(|b| *b == Some(0))
    }

    /// Whether libjpeg estimates low frequencies from the DC coefficients of the blocks around (`smoothing_ok`): of progressive
    /// images if some of them are not exact, but DC is known of every component. `quant` are the quantisation tables.
    pub(crate) fn needs_smoothing(&self, header: &Header, quant: &[Option<[u16; 64]>; MAX_COMPONENTS]) -> bool {
        let mut components = self.unknown[..self.components].iter();
        let inexact =
            || self.unknown[..self.components].iter().any(|bits| bits[ESTIMATED].iter().any(|b| *b != Some(0)));
        let divides = |table: &Option<[u16; 64]>| {
            table.is_some_and(|table| ZIGZAG[..ESTIMATED.end].iter().all(|&natural| table[usize::from(natural)] != 0))
        };
        header.process == Process::Progressive
            && components.all(|bits| bits[0].is_some())
            && quant[..self.components].iter().all(divides)
            && inexact()
    }
}

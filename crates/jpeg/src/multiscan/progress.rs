//! Which bits of the coefficients the scans so far have delivered (ITU-T T.81, annex G).

use super::smoothing::{ESTIMATED, Estimated};
use crate::markers::header::{Header, MAX_COMPONENTS, Process};
use crate::markers::parser::ScanHeader;
use crate::markers::standard::ZIGZAG;

/// Quantisation tables of the components, in natural order.
pub(crate) type QuantTables = [Option<[u16; 64]>; MAX_COMPONENTS];

/// For each coefficient of each component, the number of low bits that are not known yet; `None` before its first scan.
pub(crate) struct Progress {
    unknown: [[Option<u8>; 64]; MAX_COMPONENTS],
    /// The same of the first ones before a component's last scan; those of the first scan count as known.
    before: [[Option<u8>; ESTIMATED.end]; MAX_COMPONENTS],
    scans: u32,
    components: usize,
}

impl Progress {
    pub(crate) fn new(components: usize) -> Progress {
        Progress {
            unknown: [[None; 64]; MAX_COMPONENTS],
            before: [[None; ESTIMATED.end]; MAX_COMPONENTS],
            scans: 0,
            components,
        }
    }

    /// Records a scan. As in libjpeg, scans may come in any order and repeat what is known.
    pub(crate) fn record(&mut self, scan: &ScanHeader) {
        for part in scan.components() {
            let unknown = &self.unknown[part.index];
            self.before[part.index] = std::array::from_fn(|k| if self.scans == 0 { Some(0) } else { unknown[k] });
            self.unknown[part.index][usize::from(scan.band.0)..=usize::from(scan.band.1)].fill(Some(scan.bits.1));
        }
        self.scans += 1;
    }

    /// Whether all bits of all coefficients are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.unknown[..self.components].iter().flatten().all(|b| *b == Some(0))
    }

    /// Returns what libjpeg estimates of each component from the DC coefficients of the blocks around (`smoothing_ok`); `None` if
    /// nothing. It does so for progressive images if some low frequencies are not exact, but DC is known of every component.
    /// `quant` are the quantisation tables.
    pub(super) fn estimated(
        &self,
        header: &Header,
        quant: &QuantTables,
    ) -> Option<[Option<Estimated>; MAX_COMPONENTS]> {
        let components = || self.unknown[..self.components].iter();
        let inexact = components().any(|bits| bits[ESTIMATED].iter().any(|b| *b != Some(0)));
        let divides = |table: &Option<[u16; 64]>| {
            table.is_some_and(|table| ZIGZAG[..ESTIMATED.end].iter().all(|&natural| table[usize::from(natural)] != 0))
        };
        let needed = header.process == Process::Progressive
            && components().all(|bits| bits[0].is_some())
            && quant[..self.components].iter().all(divides)
            && inexact;
        let of = |i: usize| {
            let unknown = self.unknown[i].first_chunk()?;
            let v = if self.components == 1 { header.first_v } else { header.components[i].v };
            let before = if self.scans > 1 { self.before[i] } else { [None; ESTIMATED.end] };
            Some(Estimated { unknown: *unknown, before, quant: quant[i]?, v: v.into() })
        };
        needed.then(|| std::array::from_fn(of))
    }
}

//! Entropy-coded data as bits: byte stuffing removed, and readers of single bits.

pub(crate) mod bit_reader;
pub(crate) mod unstuffed;

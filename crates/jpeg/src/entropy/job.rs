//! A run of blocks to decode, and the tables for it.

use crate::bitstream::bit_cursor::BitCursor;
use crate::error::Damage;
use crate::huffman::code_table::CodeTable;
use crate::huffman::coefficient_table::CoefficientTable;

/// The tables of one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct BlockTables<'a> {
    pub dc: &'a CodeTable,
    pub ac: &'a CoefficientTable,
}

/// The tables of the blocks of an MCU, in the order of the scan.
pub(crate) type McuTables<'a> = [BlockTables<'a>];

/// A run of blocks to decode. Its first block is the first of an MCU.
pub(crate) struct DecodeJob<'a> {
    /// The position of the first block; on return, that after the last block decoded.
    pub cursor: &'a mut BitCursor,
    /// Output: 64 coefficients in natural order for each block, and room for one more. DC coefficients are left as the
    /// differences that the scan encodes.
    pub coefs: &'a mut [i16],
    /// Output: for each block the zigzag index of the last coefficient that may differ from 0.
    pub last: &'a mut [u8],
    /// Number of blocks.
    pub blocks: usize,
    /// Output: bit offsets of the MCUs and of the one after them. Empty if they are not needed.
    pub mcu_offsets: &'a mut [u32],
}

/// The block, counted from the job's first, at which decoding stopped, and why.
pub(crate) type Stop = (usize, Damage);

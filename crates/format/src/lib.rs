//! Bytes and structs of shardtool datasets.
#![forbid(unsafe_code)]

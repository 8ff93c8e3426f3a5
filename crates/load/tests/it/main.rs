//! What a loader delivers, in every order and through every trouble.

#[path = "../dataset/mod.rs"]
mod dataset;
mod epochs;
mod growth;
mod masks;
mod output;
mod page_cache;
mod samples;
mod statistics;
mod trouble;

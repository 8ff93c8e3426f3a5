//! Batches that a loader delivers, in every order, with damage and errors.

mod array_chunks;
mod arrays;
#[path = "../arrays_dataset/mod.rs"]
mod arrays_dataset;
mod arrays_in_stores;
mod batch_panics;
mod buckets;
mod classes;
mod clips;
mod clips_in_stores;
#[path = "../dataset/mod.rs"]
mod dataset;
mod decoded_cache;
mod decoder_panics;
mod epoch_iterator;
mod epochs;
mod exclusions;
mod float_range;
mod further_images;
mod growth;
mod masks;
mod mixing;
mod objects;
mod output;
mod packing;
#[cfg(not(shardtool_portable_unix))] // Other systems say nothing of their page cache.
mod page_cache;
mod pixel_formats;
mod pixel_mask;
mod ragged_arrays;
mod resume;
mod samples;
mod statistics;
mod trouble;
mod views;

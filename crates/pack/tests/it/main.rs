//! Packs, adopts and repairs generated folders, and reads the written files without the code under test.

#[macro_use]
mod support;

mod adopt;
mod annotations;
mod archives;
mod arrays;
mod bad_input;
mod clips;
mod clones;
mod columns;
mod complete;
mod concurrent;
mod conversion;
mod decoder_panics;
mod destinations;
mod exporting;
mod faults;
mod grouping;
mod hostile;
mod index_again;
mod index_source;
mod kills;
mod laws;
mod links;
mod nested;
mod optimize;
mod packing;
#[cfg(feature = "parquet")]
mod parquet_source;
mod repair;
mod resharding;
mod resume;
mod same_content;
mod sequences;
mod splits;
mod tasks;
mod voc;
mod voc_doubts;
mod writing;
mod yolo;
mod yolo_folders;

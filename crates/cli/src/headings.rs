//! Headings of the options in `--help`: options of one subject have one heading, in every command.

/// Where records come from.
pub(crate) const SOURCE: &str = "Source";
/// How the source is read: names, labels, columns.
pub(crate) const SOURCE_FIELDS: &str = "Fields of the source";
/// Boxes and keypoints.
pub(crate) const BOXES: &str = "Boxes and keypoints";
/// What becomes of each record.
pub(crate) const STORED: &str = "What is stored";
/// Which splits and shards are written, in which order.
pub(crate) const SPLITS: &str = "Splits and shards";
/// Parts of a pack that several machines share.
pub(crate) const PARTS: &str = "Several machines";
/// Which records are taken.
pub(crate) const RECORDS: &str = "Records";
/// What is read, checked or decoded.
pub(crate) const CHECKS: &str = "What is checked";
/// Batches of a loader and their order.
pub(crate) const BATCHES: &str = "Batches and order";
/// What a loader decodes.
pub(crate) const DECODED: &str = "What is decoded";
/// How replicas share an epoch.
pub(crate) const REPLICAS: &str = "Replicas";
/// CUDA devices.
pub(crate) const DEVICE: &str = "Device";
/// Where results are written, and what is printed.
pub(crate) const OUTPUT: &str = "Output";
/// Threads, memory, caches, stores.
pub(crate) const MACHINE: &str = "Machine";

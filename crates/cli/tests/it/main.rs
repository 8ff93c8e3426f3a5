//! Tests of the commands, in one program.

#[path = "../bucket/mod.rs"]
mod bucket;
#[path = "../demo/mod.rs"]
mod demo;

mod cache;
mod change_in_stores;
mod changes_on_failing_networks;
mod clones_in_stores;
mod columns;
mod damage_names;
mod device;
mod differences;
mod docs;
mod float_range;
mod help;
mod index_and_export_to_stores;
mod interrupt;
mod made;
mod manual;
mod options;
mod pack_from_stores;
mod pack_to_stores;
mod parts;
mod purge_in_stores;
mod selection;
mod several_values;
mod shown;
mod simd;
mod sources_in_stores;
mod stable_names;
mod stores;
mod strip_metadata;
mod structure;
mod truncated;
mod view;

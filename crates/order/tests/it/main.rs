//! Tests of orders, sources, replicas and states, in one program.

mod bucket_choice;
mod buckets;
mod launch;
mod orders;
mod packing;
mod permutation;
mod properties;
mod quality;
mod replicas;
mod scheduled;
mod sources;
mod state;
mod vectors;

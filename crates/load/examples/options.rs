//! Prints the options of a loader with their schemas as JSON. `scripts/options` makes Python's classes and the reference page of it.

fn main() {
    println!("{:#}", shardtool_load::option_schemas());
}

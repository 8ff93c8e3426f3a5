//! Parses the argument of `--float-range`.

use shardtool_decode::FloatRange;

/// Parses `LOW,HIGH`: the values of floating-point samples that become 0 and 255.
pub(crate) fn parse(text: &str) -> Result<FloatRange, String> {
    let ends = text.split_once(',').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let range = ends.and_then(|(low, high)| FloatRange::new(low, high));
    range.ok_or_else(|| "expected LOW,HIGH, two finite numbers with LOW < HIGH, for example 0,1".to_owned())
}

//! The file of `--keypoints`.

use serde_json::Value;
use shardtool_format::manifest::Keypoints;

/// Members of the file.
const MEMBERS: [&str; 3] = ["names", "flip_index", "skeleton"];

/// Reads what keypoints are from a JSON file.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(path: &str) -> Result<Keypoints, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string())?;
    let members = value.as_object().ok_or("expected an object with `names`, `flip_index` or `skeleton`")?;
    if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(format!("unknown member `{unknown}`: expected `names`, `flip_index`, `skeleton`"));
    }
    let keypoints: Keypoints = serde_json::from_value(value).map_err(|error| error.to_string())?;
    keypoints.problem().map_or(Ok(keypoints), Err)
}

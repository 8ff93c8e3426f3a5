//! Parses the arguments of `--clip` and `--array`: features of several values.

use serde_json::{Map, Value};
use shardtool_load::{Arrays, Clip, RaggedArrays};

/// Feature of the frames, as `pack --from clips` names it.
const FRAMES: &str = "frames";

/// Parses `frames=N[,stride=N][,clips=N][,sampling=NAME][,feature=NAME]`, with the names that the members of a clip have in JSON.
/// The clip has no steps.
pub(crate) fn clip(text: &str) -> Result<Clip, String> {
    let mut members = Map::new();
    for option in text.split(',') {
        let (name, value) = option.split_once('=').ok_or(EXPECTED)?;
        let member = match name {
            "frames" | "stride" | "clips" => {
                let number = value.parse::<u32>().ok().filter(|n| *n > 0);
                number.ok_or_else(|| format!("`{option}`: expected 1 or more"))?.into()
            }
            "sampling" | "feature" => Value::from(value),
            other => return Err(format!("unknown `{other}`: {EXPECTED}")),
        };
        members.insert(name.to_owned(), member);
    }
    if !members.contains_key("frames") {
        return Err(EXPECTED.to_owned());
    }
    members.entry("feature").or_insert(FRAMES.into());
    members.insert("views".to_owned(), Value::Array(vec![]));
    serde_json::from_value(members.into()).map_err(|error| error.to_string())
}

const EXPECTED: &str = "expected frames=N and perhaps stride=N, clips=N, sampling=NAME, feature=NAME";

/// Parses `NAME[,NAME…][:CROP[:KIND]]`: arrays with one geometry, and the random crop that a row holds, such as `64x64x64` (`*` for
/// a whole dimension), or the dimensions that follow the image: `HxW`, `HxWx*`, `*xHxW`; with the kind of the elements, if the image
/// changes them.
pub(crate) fn array(text: &str) -> Result<Arrays, String> {
    let (name, crop) = text.split_once(':').map_or((text, None), |(name, crop)| (name, Some(crop)));
    let (crop, kind) = match crop.and_then(|crop| crop.split_once(':')) {
        Some((crop, kind)) => (Some(crop), Some(kind)),
        None => (crop, None),
    };
    let names: Vec<_> = name.split(',').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err("expected NAME or NAME:CROP, for example ct:64x64x64".to_owned());
    }
    let mut group = Arrays::new(names);
    let unknown = |kind| format!("unknown `{kind}`: expected flow, disparity, normals or normals_y_up");
    group.kind = kind.map(|kind| serde_json::from_value(kind.into()).map_err(|_| unknown(kind))).transpose()?;
    let Some(crop) = crop else { return Ok(group) };
    let sides: Vec<_> = crop.split('x').collect();
    if let Some(height) = sides.iter().position(|side| *side == "H") {
        let others = |(d, side): (usize, &&str)| match d.checked_sub(height) {
            Some(0) => *side == "H",
            Some(1) => *side == "W",
            _ => *side == "*",
        };
        if sides.len() < height + 2 || !sides.iter().enumerate().all(others) {
            return Err(format!("`{crop}`: expected H, then W, and * for the other dimensions, for example *xHxW"));
        }
        group.image_axes = Some((height, height + 1));
        return Ok(group);
    }
    let side = |side: &&str| match *side {
        "*" => Ok(None),
        number => number.parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(|| {
            format!("crop `{crop}`: expected lengths of 1 or more, for example 64x64x*, or HxW to follow the image")
        }),
    };
    group.crop = Some(sides.iter().map(side).collect::<Result<_, _>>()?);
    Ok(group)
}

/// Parses `NAME[,NAME…]:LENGTH`: arrays that differ in length, and how many elements of each a row holds.
pub(crate) fn ragged_array(text: &str) -> Result<RaggedArrays, String> {
    let expected = || "expected NAME:LENGTH, for example points:1024".to_owned();
    let (name, length) = text.split_once(':').ok_or_else(expected)?;
    let names: Vec<_> = name.split(',').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(expected());
    }
    Ok(RaggedArrays::new(names, length.parse().map_err(|_| expected())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardtool_load::ArrayKind;
    use shardtool_load::ClipSampling;

    #[test]
    fn parses_clips() {
        let found = clip("frames=8,stride=4,sampling=uniform,feature=video,clips=2").unwrap();
        assert_eq!((found.frames, found.stride, found.clips, &*found.feature), (8, 4, 2, "video"));
        assert_eq!(found.sampling, ClipSampling::Uniform);
        let found = clip("frames=8").unwrap();
        assert_eq!((found.frames, found.stride, found.clips, &*found.feature), (8, 1, 1, "frames"));
        assert_eq!(found.sampling, ClipSampling::Random);
        for refused in ["", "8", "stride=4", "frames=0", "frames=x", "frames=8,fps=3", "frames=8,sampling=best"] {
            assert!(clip(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn parses_arrays() {
        assert_eq!(array("ct").unwrap(), Arrays::new(vec!["ct".to_owned()]));
        let found = ragged_array("points,class:1024").unwrap();
        assert_eq!((&found.features[..], found.length.get()), (&["points".to_owned(), "class".to_owned()][..], 1024));
        for wrong in ["points", ":8", "points:0", "points:-1", "points,:8", "points:8x3"] {
            assert!(ragged_array(wrong).is_err(), "{wrong}");
        }
        assert_eq!(array("ct,seg:8").unwrap().features, ["ct", "seg"]);
        let crop = array("ct:64x*x8").unwrap();
        assert_eq!((crop.crop, crop.random), (Some(vec![Some(64), None, Some(8)]), true));
        for (text, axes) in [("depth:HxW", (0, 1)), ("normals:HxWx*", (0, 1)), ("maps:*xHxW", (1, 2))] {
            let group = array(text).unwrap();
            assert_eq!((group.image_axes, group.crop, group.kind), (Some(axes), None, None), "{text}");
        }
        let flow = array("flow:HxWx*:flow").unwrap();
        assert_eq!((flow.image_axes, flow.kind), (Some((0, 1)), Some(ArrayKind::Flow)));
        for refused in [
            "d:HxW:depth",
            "d:HxW:",
            "",
            ":4",
            "ct,:4",
            "ct:",
            "ct:4x",
            "ct:0",
            "ct:-1",
            "d:H",
            "d:W",
            "d:WxH",
            "d:Hx*xW",
            "d:HxWx4",
            "d:HxWxH",
            "d:hxw",
        ] {
            assert!(array(refused).is_err(), "{refused}");
        }
    }
}

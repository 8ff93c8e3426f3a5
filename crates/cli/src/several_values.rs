//! Parses the arguments of `--clip` and `--array`: features of several values.

use shardtool_load::{ArrayCrop, ArrayGroup, Clip, ClipSampling};

/// Feature of the frames, as `pack --from clips` names it.
const FRAMES: &str = "frames";

/// Parses `frames=N[,stride=N][,clips=N][,sampling=NAME][,feature=NAME]`.
pub(crate) fn clip(text: &str) -> Result<Clip, String> {
    let mut clip = Clip::new(FRAMES, 0);
    for option in text.split(',') {
        let (name, value) = option.split_once('=').ok_or(EXPECTED)?;
        let number = || value.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{option}`: expected 1 or more"));
        match name {
            "frames" => clip.frames = number()?,
            "stride" => clip.stride = number()?,
            "clips" => clip.clips = number()?,
            "sampling" => clip.sampling = sampling(value)?,
            "feature" => clip.feature = value.to_owned(),
            other => return Err(format!("unknown `{other}`: {EXPECTED}")),
        }
    }
    if clip.frames == 0 { Err(EXPECTED.to_owned()) } else { Ok(clip) }
}

const EXPECTED: &str = "expected frames=N and perhaps stride=N, clips=N, sampling=NAME, feature=NAME";

fn sampling(name: &str) -> Result<ClipSampling, String> {
    Ok(match name {
        "random" => ClipSampling::Random,
        "center" => ClipSampling::Center,
        "even" => ClipSampling::Even,
        "uniform" => ClipSampling::Uniform,
        other => return Err(format!("unknown sampling `{other}`: expected random, center, even or uniform")),
    })
}

/// Parses `NAME[,NAME…][:CROP]`: arrays with one geometry, and the random crop that a row holds, such as `64x64x64` (`*` for
/// a whole dimension), or the dimensions that follow the image: `HxW`, `HxWx*`, `*xHxW`.
pub(crate) fn array(text: &str) -> Result<ArrayGroup, String> {
    let (name, crop) = text.split_once(':').map_or((text, None), |(name, crop)| (name, Some(crop)));
    let names: Vec<_> = name.split(',').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err("expected NAME or NAME:CROP, for example ct:64x64x64".to_owned());
    }
    let mut group = ArrayGroup::new(names);
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
    let size = sides.iter().map(side).collect::<Result<_, _>>()?;
    group.crop = Some(ArrayCrop { size, random: true });
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_clips() {
        let found = clip("frames=8,stride=4,sampling=uniform,feature=video,clips=2").unwrap();
        assert_eq!((found.frames, found.stride, found.clips, &*found.feature), (8, 4, 2, "video"));
        assert_eq!(found.sampling, ClipSampling::Uniform);
        assert_eq!(clip("frames=8").unwrap(), Clip::new("frames", 8));
        for refused in ["", "8", "stride=4", "frames=0", "frames=x", "frames=8,fps=3", "frames=8,sampling=best"] {
            assert!(clip(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn parses_arrays() {
        assert_eq!(array("ct").unwrap(), ArrayGroup::new(vec!["ct".to_owned()]));
        assert_eq!(array("ct,seg:8").unwrap().features, ["ct", "seg"]);
        let crop = array("ct:64x*x8").unwrap().crop.unwrap();
        assert_eq!((crop.size, crop.random), (vec![Some(64), None, Some(8)], true));
        for (text, axes) in [("depth:HxW", (0, 1)), ("normals:HxWx*", (0, 1)), ("maps:*xHxW", (1, 2))] {
            let group = array(text).unwrap();
            assert_eq!((group.image_axes, group.crop), (Some(axes), None), "{text}");
        }
        for refused in [
            "", ":4", "ct,:4", "ct:", "ct:4x", "ct:0", "ct:-1", "d:H", "d:W", "d:WxH", "d:Hx*xW", "d:HxWx4", "d:HxWxH",
            "d:hxw",
        ] {
            assert!(array(refused).is_err(), "{refused}");
        }
    }
}

//! Depths and flow are shown next to their image, and label maps over it.

use crate::support::{Site, jpeg};
use shardtool_decode::{DecodeOptions, decode};
use shardtool_format::array::ArrayDtype;
use shardtool_format::manifest::DType;
use shardtool_pack::{Array, ArrayColumn, Image, Sample, Value, Writer, WriterOptions};
use std::borrow::Cow;

/// Returns a grey PNG of 64 x 48 pixels.
fn grey(depth: png::BitDepth, value: impl Fn(u32, u32) -> Vec<u8>) -> Vec<u8> {
    let mut out = vec![];
    let mut encoder = png::Encoder::new(&mut out, 64, 48);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(depth);
    let pixels: Vec<u8> = (0..48).flat_map(|y| (0..64).map(move |x| (x, y))).flat_map(|(x, y)| value(x, y)).collect();
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    out
}

fn array(shape: &[u64], values: &[f32]) -> Value {
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Value::Array(Array { shape: shape.to_vec(), dtype: ArrayDtype::F32, data: Cow::Owned(data) })
}

#[test]
fn values_of_pixels_have_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = WriterOptions::new(folder.path(), "train");
    options.features = ["depth", "mask"].map(|name| (name.to_owned(), DType::Bytes)).to_vec();
    options.arrays = ["flow", "planes", "embedding"].map(ArrayColumn::new).to_vec();
    let writer = Writer::open(&options).unwrap();
    // To the right in the left half, to the left in the right one; one pixel is not known.
    let right = |at: usize| if at % 64 < 32 { 3.0 } else { -3.0 };
    let mut flow: Vec<f32> = (0..64 * 48).flat_map(|at| [right(at), 0.0]).collect();
    flow[2 * 64] = f32::NAN;
    let planes: Vec<f32> = (0..64 * 48).map(right).chain([0.0; 64 * 48]).collect();
    let values = vec![
        ("flow", array(&[48, 64, 2], &flow)),
        ("planes", array(&[2, 48, 64], &planes)),
        ("embedding", array(&[16], &[0.5; 16])),
        ("depth", Value::Bytes(vec![grey(png::BitDepth::Sixteen, |x, _| (x as u16 * 100).to_be_bytes().to_vec())])),
        ("mask", Value::Bytes(vec![grey(png::BitDepth::Eight, |_, y| vec![y as u8])])),
    ];
    let image = jpeg(64, 48, 0);
    writer.write(&Sample { key: "one", image: Some(Image::File(&image)), label: None, values }).unwrap();
    writer.finish().unwrap();

    let site = Site::of(folder.path());
    let page = site.page("/train/record/0");
    let (_, shown) = page.split_once("Values of the pixels").unwrap();
    for name in ["depth", "flow", "planes"] {
        assert!(shown.contains(&format!("/train/values/0?name={name}")), "{name}: {shown}");
    }
    assert!(!page.contains("name=embedding"));
    // A depth is not a label map.
    assert!(page.contains("/train/mask/0?name=mask") && !page.contains("/train/mask/0?name=depth"));
    let pixel = |name: &str, x: usize, y: usize| {
        let answer = site.get(&format!("/train/values/0?name={name}"));
        assert_eq!(answer.status, 200);
        assert!(answer.headers.iter().any(|(name, value)| name == "content-type" && value == "image/png"));
        let pixels = decode(&answer.body, &DecodeOptions::default()).unwrap();
        assert_eq!((pixels.width, pixels.height), (64, 48));
        pixels.data[3 * (64 * y + x)..][..3].to_vec()
    };
    assert_eq!((pixel("flow", 3, 3), pixel("flow", 60, 3)), (vec![255, 64, 64], vec![0, 191, 191]));
    assert_eq!((pixel("planes", 3, 3), pixel("planes", 60, 3)), (vec![255, 64, 64], vec![0, 191, 191]));
    assert_eq!(pixel("flow", 0, 1), [255; 3], "a pixel without a known flow");
    let greys: Vec<u8> = (0..64).map(|x| pixel("depth", x, 7)[0]).collect();
    assert!(greys.is_sorted() && greys[0] == 0 && greys[63] == 255 && greys[30] > 90 && greys[30] < 160, "{greys:?}");
    // Neither arrays of another shape nor what is not there is a picture.
    for name in ["embedding", "none", "caption"] {
        let answer = site.get(&format!("/train/values/0?name={name}"));
        assert!(answer.text().contains("<svg"), "{name}");
    }
}

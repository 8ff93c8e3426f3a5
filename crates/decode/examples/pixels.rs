//! Answers requests on standard input with pixels on standard output, so that another program (`tests/pixels.py`) can compare
//! them with its own. One request per line:
//!
//! ```text
//! decode FILE                              the image as stored
//! upright FILE                             the image with its orientation applied
//! info FILE                                one pixel: the orientation, the number of channels, 0
//! resize FILE WIDTH HEIGHT                 the whole image at another size
//! values DTYPE LAYOUT FILE                 the image as normalised numbers of a type (f32, f16, bf16) and layout (nchw, nhwc), their bytes
//! png FILE                                 the PNG that a file of a format that is not stored is converted to; its name counts
//! encode FILE QUALITY                      a JPEG of the image
//! apply FILTER JSON EXIF DRAWS FILE        a pipeline as JSON without spaces; DRAWS are random numbers in [0, 1), separated by commas;
//!                                          FILTER is image (that of the pipeline), nearest or labels (stored values, each repeated three times)
//! ```
//!
//! Each answer is width, height and number of bytes as little-endian u32, then the bytes. A request that fails is answered by
//! three zeros and the reason on standard error.

use std::io::{BufRead, Write, stdin, stdout};

use shardtool_decode::{
    ConvertedFormat, DecodeOptions, Decoder, Dtype, Filter, LabelDtype, LabelMap, Layout, Limits, Normalizer,
    Orientation, Output, Pipeline, Pixels, Random, RegionOptions, ResizeScratch, TransformScratch, apply_geometry,
    decode, encode_jpeg, probe, resize,
};
use shardtool_format::Chain;

type Failure = Box<dyn std::error::Error>;

/// The numbers given by the request; `below` scales them to its range.
struct Draws(std::vec::IntoIter<f64>);

impl Random for Draws {
    fn unit(&mut self) -> f64 {
        self.0.next().unwrap_or(0.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.unit() * n as f64) as u64
    }
}

fn main() -> Result<(), Failure> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let answer = answer(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|e| {
            eprintln!("{line}: {}", Chain(&*e));
            Pixels::default()
        });
        for n in [answer.width, answer.height, u32::try_from(answer.data.len())?] {
            out.write_all(&n.to_le_bytes())?;
        }
        out.write_all(&answer.data)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(request: &[&str]) -> Result<Pixels, Failure> {
    let options = DecodeOptions::default();
    Ok(match *request {
        ["decode", file] => decode(&std::fs::read(file)?, &options)?,
        ["upright", file] => decode(&std::fs::read(file)?, &options.with_apply_orientation(true))?,
        ["info", file] => {
            let info = probe(&std::fs::read(file)?, &Limits::default())?;
            Pixels { width: 1, height: 1, data: vec![info.orientation, info.channels, 0] }
        }
        ["resize", file, width, height] => {
            let pixels = decode(&std::fs::read(file)?, &options)?;
            resize(pixels.view()?, (width.parse()?, height.parse()?))?
        }
        ["values", dtype, layout, file] => {
            let pixels = decode(&std::fs::read(file)?, &options)?;
            let dtype = match dtype {
                "f32" => Dtype::F32,
                "f16" => Dtype::F16,
                "bf16" => Dtype::Bf16,
                _ => return Err("expected f32, f16 or bf16".into()),
            };
            let layout = if layout == "nhwc" { Layout::Nhwc } else { Layout::Nchw };
            let normalizer = Normalizer::new(Output::new(dtype, layout, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])?);
            let mut data = vec![0; pixels.data.len() * dtype.bytes()];
            normalizer.write(&pixels.data, &mut data);
            Pixels { data, ..pixels }
        }
        [kind @ ("png" | "numbers"), file] => {
            let bytes = std::fs::read(file)?;
            let format = ConvertedFormat::detect(&bytes, Some(file)).ok_or("not a format that is converted")?;
            let limits = Limits::default();
            let png =
                if kind == "png" { format.to_png(&bytes, &limits) } else { format.to_png_unscaled(&bytes, &limits) };
            Pixels { width: 1, height: 1, data: png?.into_owned() }
        }
        ["encode", file, quality] => {
            let pixels = decode(&std::fs::read(file)?, &options)?;
            let data = encode_jpeg(pixels.view()?, quality.parse()?)?;
            Pixels { data, ..pixels }
        }
        ["apply", filter, json, exif, draws, file] => {
            let bytes = std::fs::read(file)?;
            let pipeline: Pipeline = serde_json::from_str(json)?;
            let draws = draws.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
            let info = probe(&bytes, &Limits::default())?;
            let orientation = Orientation::from_exif(exif.parse()?);
            let plan = pipeline.plan((info.width, info.height), orientation, &mut Draws(draws.into_iter()), &[])?;
            let geometry = plan.geometry();
            let (width, height) = geometry.output_size();
            if filter == "labels" {
                let (mut labels, mut map) = (LabelMap::default(), vec![0; width as usize * height as usize]);
                labels.decode(&bytes, LabelDtype::U8, &Limits::default())?;
                labels.apply_geometry(&geometry, 0, &mut map)?;
                return Ok(Pixels { width, height, data: map.into_iter().flat_map(|value| [value; 3]).collect() });
            }
            let mut decoder = Decoder::default();
            let exact = RegionOptions::default().with_reducing_gap(None);
            let region = decoder.decode_region(&bytes, None, &geometry, &exact)?;
            let mut data = vec![0; width as usize * height as usize * 3];
            match filter {
                "nearest" => {
                    let scratch = &mut ResizeScratch::default();
                    apply_geometry(&geometry, &region, Filter::Nearest, &mut data, scratch)?;
                }
                _ => plan.apply(&region, &mut data, &mut TransformScratch::default())?,
            }
            Pixels { width, height, data }
        }
        _ => return Err("expected decode, upright, info, resize, values, png, encode or apply".into()),
    })
}

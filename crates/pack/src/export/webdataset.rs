//! WebDataset: a tar per shard, with the image, `.cls`, and `.json` with the other fields of each sample.

use super::run::{Run, ShardExport};
use super::sample::Sample;
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::sample::fits_float32;
use crate::{Error, Reason};
use serde_json::{Map, Number, Value};
use shardtool_format::example::Feature;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_format::names;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

/// Writes a shard's tar. The same records always give the same bytes.
///
/// # Errors
/// [`Error::Read`], [`Error::Io`].
pub(super) fn write(run: &Run<'_>, shard: usize, progress: &dyn Progress) -> Result<ShardExport, Error> {
    let name = format!("{}.tar", run.stem(shard));
    let (file, path) = run.create(Path::new(&name))?;
    let io = |e| Error::io("write", &path)(e);
    let mut tar = tar::Builder::new(file);
    let done = run.each(shard, progress, |sample| {
        let key = run.file_names.name(sample);
        for (extension, bytes) in members(sample, run.split.manifest())? {
            append(&mut tar, &format!("{key}.{extension}"), &bytes).map_err(|e| Refusal::All(io(e)))?;
        }
        Ok(())
    })?;
    let bytes = tar.into_inner().and_then(|file| file.finish()).map_err(io)?;
    Ok(ShardExport { files: 1, bytes, ..done })
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, path, bytes)
}

/// An extension, and the content of its file.
type Member<'a> = (String, Cow<'a, [u8]>);

/// Returns the members of a sample: extensions and contents. Byte strings that are not UTF-8 are separate members.
fn members<'a>(sample: &'a Sample<'_>, manifest: &Manifest) -> Result<Vec<Member<'a>>, Refusal> {
    let mut members = vec![(sample.extension.to_owned(), sample.image.as_ref().into())];
    let mut taken = HashSet::from([sample.extension.to_owned(), "json".to_owned()]);
    if let Some(label) = sample.label {
        members.push(("cls".to_owned(), label.to_string().into_bytes().into()));
        taken.insert("cls".to_owned());
    }
    // Keeps keys that a tar cannot hold, so that packing the export restores them.
    let mut json = Map::from_iter([(names::IMAGE_KEY.to_owned(), Value::from(sample.key.as_str()))]);
    if let Some(class) = &sample.class {
        json.insert(names::CLASS_TEXT.to_owned(), Value::from(class.as_str()));
    }
    for (name, feature) in &sample.fields {
        let dtype = manifest.dtype(name);
        match (value(*feature, dtype), feature) {
            (Some(value), _) => drop(json.insert(name.to_string(), value)),
            (None, Feature::Bytes(list)) if list.single().is_some() && dtype != Some(DType::Float64) => {
                let extension = name.to_lowercase().replace(['/', '\\', '\0'], "-");
                let extension = if taken.contains(&extension) { format!("{extension}.bin") } else { extension };
                taken.insert(extension.clone());
                members.push((extension, list.single().unwrap_or_default().into()));
            }
            (None, Feature::Bytes(_)) if dtype != Some(DType::Float64) => {
                return Err(Refusal::Record(Reason::NoText { field: name.to_string() }));
            }
            _ => return Err(Refusal::Record(Reason::NotFinite { field: name.to_string() })),
        }
    }
    members.push(("json".to_owned(), Value::Object(json).to_string().into_bytes().into()));
    Ok(members)
}

/// Converts a field of a type to JSON: a single value, or a list of several; `None` if a byte string is not UTF-8, and for NaN and
/// infinities, which JSON lacks.
fn value(feature: Feature<'_>, dtype: Option<DType>) -> Option<Value> {
    let logical = match (feature, dtype) {
        (Feature::Bytes(list), Some(DType::Float64)) => list
            .numbers()
            .map(|all| all.into_iter().map(|value| Number::from_f64(value).map(Value::Number)).collect::<Option<_>>()),
        (Feature::Bytes(list), Some(DType::Uint64)) => {
            list.numbers::<u64>().map(|all| Some(all.into_iter().map(Value::from).collect()))
        }
        _ => None,
    };
    let mut all: Vec<Value> = match feature {
        _ if logical.is_some() => logical.expect("some")?,
        Feature::Empty => vec![],
        Feature::Int64(list) => list.iter().map(Value::from).collect(),
        Feature::Float(list) => list.iter().map(float).collect::<Option<_>>()?,
        Feature::Bytes(list) => {
            list.iter().map(|bytes| std::str::from_utf8(bytes).ok().map(Value::from)).collect::<Option<Vec<_>>>()?
        }
    };
    Some(match all.len() {
        0 => Value::Null,
        1 => all.swap_remove(0),
        _ => Value::Array(all),
    })
}

/// Converts a 32-bit float to its shortest decimal if that has few digits, otherwise to its exact value, so that a reader infers
/// float32; `None` for NaN and infinities.
fn float(value: f32) -> Option<Value> {
    let shortest = value.to_string().parse().ok().filter(|shortest| fits_float32(*shortest));
    Number::from_f64(shortest.unwrap_or(value.into())).map(Value::Number)
}

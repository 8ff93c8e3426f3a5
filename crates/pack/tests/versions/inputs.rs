//! Random inputs of changes, and what the model expects of them.

use crate::model::{Sample, Texts};
use serde::{Deserialize, Serialize};
use shardtool_format::manifest::DType;
use shardtool_pack::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A generator of random numbers that is the same everywhere (SplitMix64).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(crate) const TYPES: [(&str, DType); 3] = [("a", DType::Int64), ("text", DType::Bytes), ("vec", DType::Float)];

pub(crate) fn all_names() -> BTreeSet<String> {
    TYPES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns the values of a row of a list, and what the model expects of them.
pub(crate) fn row(rng: &mut Rng, key: &str, names: &BTreeSet<String>) -> (String, Sample) {
    let mut json = format!("{{\"key\": \"{key}\"");
    let mut features = BTreeMap::new();
    for name in TYPES.iter().map(|(name, _)| *name).filter(|name| names.contains(*name)) {
        let (text, values): (String, Texts) = match name {
            "a" => {
                let a = rng.below(10).to_string();
                (a.clone(), vec![a])
            }
            "text" => {
                let text = format!("t{}", rng.below(5));
                (format!("\"{text}\""), vec![text])
            }
            _ => {
                let vec: Texts = (0..1 + rng.below(3)).map(|_| format!("{}.5", rng.below(9))).collect();
                (format!("[{}]", vec.join(", ")), vec)
            }
        };
        write!(json, ", \"{name}\": {text}").unwrap();
        features.insert(name.to_owned(), values);
    }
    json.push('}');
    (json, Sample { key: key.to_owned(), features, row: 0 })
}

pub(crate) fn list(
    folder: &Path,
    name: &str,
    rng: &mut Rng,
    keys: &[String],
    names: &BTreeSet<String>,
) -> (PathBuf, Vec<Sample>) {
    let (lines, samples): (Vec<_>, Vec<_>) = keys.iter().map(|key| row(rng, key, names)).unzip();
    let path = folder.join(name);
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    (path, samples)
}

pub(crate) fn value(rng: &mut Rng, dtype: DType) -> (Option<Value>, Option<Texts>) {
    if rng.one_in(6) {
        return (None, None);
    }
    let several = if rng.one_in(3) { 1 + rng.below(3) } else { 1 };
    match dtype {
        DType::Int64 => {
            let list: Vec<i64> = (0..several).map(|_| rng.below(10) as i64 - 2).collect();
            let texts = list.iter().map(i64::to_string).collect();
            (Some(Value::Int64(list)), Some(texts))
        }
        DType::Float => {
            let list: Vec<f32> = (0..several).map(|_| rng.below(100) as f32 / 4.0).collect();
            let texts = list.iter().map(|v| format!("{v:?}")).collect();
            (Some(Value::Float(list)), Some(texts))
        }
        DType::Float64 => {
            let list: Vec<f64> = (0..several).map(|_| rng.below(1000) as f64 / 3.0).collect();
            let texts = list.iter().map(|v| format!("{v:?}")).collect();
            (Some(Value::Float64(list)), Some(texts))
        }
        DType::Uint64 => {
            let list: Vec<u64> = (0..several).map(|_| u64::MAX - rng.below(9)).collect();
            let texts = list.iter().map(u64::to_string).collect();
            (Some(Value::Uint64(list)), Some(texts))
        }
        DType::Bytes => {
            let list: Vec<Vec<u8>> = (0..several).map(|_| format!("v{}", rng.below(7)).into_bytes()).collect();
            let texts = list.iter().map(|v| String::from_utf8(v.clone()).unwrap()).collect();
            (Some(Value::Bytes(list)), Some(texts))
        }
    }
}

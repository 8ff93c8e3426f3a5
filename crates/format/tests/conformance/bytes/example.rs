//! `tf.train.Example` in protobuf's wire format.

/// The values of a feature. Floats are their bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum List {
    Bytes(Vec<Vec<u8>>),
    Float(Vec<u32>),
    Int64(Vec<i64>),
}

pub(crate) fn bytes<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> List {
    List::Bytes(values.into_iter().map(|value| value.as_ref().to_vec()).collect())
}

pub(crate) fn text(value: &str) -> List {
    bytes([value])
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> List {
    List::Int64(values.into_iter().collect())
}

pub(crate) fn floats(values: impl IntoIterator<Item = f32>) -> List {
    List::Float(values.into_iter().map(f32::to_bits).collect())
}

impl List {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            List::Bytes(_) => "bytes",
            List::Float(_) => "float",
            List::Int64(_) => "int64",
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            List::Bytes(values) => values.len(),
            List::Float(values) => values.len(),
            List::Int64(values) => values.len(),
        }
    }

    /// Returns the byte strings; none if the list is of numbers.
    pub(crate) fn strings(&self) -> &[Vec<u8>] {
        match self {
            List::Bytes(values) => values,
            _ => &[],
        }
    }

    /// Returns the canonical Feature.
    pub(crate) fn feature(&self) -> Vec<u8> {
        match self {
            List::Bytes(values) => delimited(1, &values.iter().flat_map(|v| delimited(1, v)).collect::<Vec<_>>()),
            List::Float(values) => packed(2, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            List::Int64(values) => packed(3, values.iter().flat_map(|v| varint(*v as u64)).collect()),
        }
    }
}

fn packed(kind: u64, numbers: Vec<u8>) -> Vec<u8> {
    delimited(kind, &if numbers.is_empty() { vec![] } else { delimited(1, &numbers) })
}

/// Returns a varint in the fewest possible bytes.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = vec![];
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Returns a field of wire type 2.
pub(crate) fn delimited(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// Returns an entry of Features: a name and a Feature, framed as field 1.
pub(crate) fn entry(name: &str, feature: &[u8]) -> Vec<u8> {
    delimited(1, &[delimited(1, name.as_bytes()), delimited(2, feature)].concat())
}

/// Returns the canonical Example of features in byte order of their names.
pub(crate) fn example(features: &[(String, List)]) -> Vec<u8> {
    assert!(features.is_sorted_by(|a, b| a.0.as_bytes() < b.0.as_bytes()), "names are in byte order");
    delimited(1, &features.iter().flat_map(|(name, list)| entry(name, &list.feature())).collect::<Vec<_>>())
}

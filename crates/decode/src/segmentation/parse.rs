//! The JSON text of a segmentation, as COCO files and the feature `image/object/segmentation` have it.

use super::{Segmentation, runs};
use serde::Deserialize;
use serde::de::{
    Deserializer, Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer, value::SeqAccessDeserializer,
};
use std::fmt;

impl<'de> Deserialize<'de> for Segmentation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Kinds)
    }
}

/// Reads a list of polygons, or an object with run lengths.
struct Kinds;

impl<'de> Visitor<'de> for Kinds {
    type Value = Segmentation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of polygons, or `size` and `counts` of run lengths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Segmentation, A::Error> {
        let mut polygons = vec![];
        while let Some(Polygon(points)) = list.next_element()? {
            polygons.push(points);
        }
        Ok(Segmentation::Polygons(polygons))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Segmentation, A::Error> {
        let RunLengths { size: [height, width], counts } =
            RunLengths::deserialize(MapAccessDeserializer::new(members))?;
        let lengths = match counts {
            Counts::Numbers(lengths) => lengths,
            Counts::Compressed(text) => runs::decompress(&text).map_err(A::Error::custom)?,
        };
        Ok(Segmentation::Runs { size: (width, height), lengths })
    }
}

#[derive(Deserialize)]
struct RunLengths {
    size: [u32; 2],
    counts: Counts,
}

/// Lengths as numbers, or compressed to a text.
enum Counts {
    Numbers(Vec<u32>),
    Compressed(String),
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of run lengths, or a text of compressed ones")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Counts, E> {
                Ok(Counts::Compressed(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Counts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Counts::Numbers)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The numbers of one polygon.
struct Polygon(Vec<f64>);

impl<'de> Deserialize<'de> for Polygon {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Points;

        impl<'de> Visitor<'de> for Points {
            type Value = Polygon;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("x and y of the points of a polygon")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Polygon, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Polygon)
            }
        }

        deserializer.deserialize_any(Points)
    }
}

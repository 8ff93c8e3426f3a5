//! The schemas of the options, from which bindings and documents are generated.

use super::{
    Arrays, AspectRatioBuckets, BadSamples, Clip, Column, CopyPaste, DecodedCache, Devices, FurtherImage, Image,
    LengthBuckets, Mask, Mosaic, Objects, Pairs, PixelMask, Pixels, Prefetch, RaggedArrays, Replicas, Tokens,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde_json::{Value, json};

/// Finds the members of a struct: the names that its `Deserialize` asks for.
struct Members<'m>(&'m mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Members<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        members: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(members);
        Err(Error::custom("found"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn describe<'de, T: JsonSchema + Deserialize<'de>>() -> Value {
    let mut members = vec![];
    let _ = T::deserialize(Members(&mut members));
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    json!({"members": members, "schema": SchemaGenerator::new(settings).into_root_schema_for::<T>()})
}

/// Returns the structs of options: each with its JSON Schema (`schema`) and the names of its members in the order of the source
/// (`members`). Members that JSON cannot hold are left out.
pub fn option_schemas() -> Value {
    json!({
        "Pixels": describe::<Pixels>(),
        "Image": describe::<Image>(),
        "FurtherImage": describe::<FurtherImage>(),
        "Mask": describe::<Mask>(),
        "PixelMask": describe::<PixelMask>(),
        "Objects": describe::<Objects>(),
        "Clip": describe::<Clip>(),
        "Arrays": describe::<Arrays>(),
        "RaggedArrays": describe::<RaggedArrays>(),
        "Column": describe::<Column>(),
        "Tokens": describe::<Tokens>(),
        "Pairs": describe::<Pairs>(),
        "Mosaic": describe::<Mosaic>(),
        "CopyPaste": describe::<CopyPaste>(),
        "AspectRatioBuckets": describe::<AspectRatioBuckets>(),
        "LengthBuckets": describe::<LengthBuckets>(),
        "DecodedCache": describe::<DecodedCache>(),
        "BadSamples": describe::<BadSamples>(),
        "Prefetch": describe::<Prefetch>(),
        "Replica": describe::<Replicas>(),
        "Device": describe::<Devices>(),
    })
}

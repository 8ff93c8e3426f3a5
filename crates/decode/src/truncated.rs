//! What happens to cut and damaged JPEGs.

use serde::{Deserialize, Serialize};

/// What happens to a JPEG whose data are cut or damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Truncated {
    /// It is an error.
    #[default]
    Error,
    /// It is decoded to what libjpeg-turbo makes of it after a warning, as Pillow does with `LOAD_TRUNCATED_IMAGES`: what is
    /// missing is grey. Damage in a header stays an error, as in libjpeg-turbo. A part of the image has the pixels of the whole.
    Fill,
}

impl Truncated {
    /// Returns the choice of that name: `error` or `fill`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Truncated::Error, Truncated::Fill].into_iter().find(|choice| choice.name() == name)
    }

    /// Returns the name of the choice in options.
    pub fn name(self) -> &'static str {
        match self {
            Truncated::Error => "error",
            Truncated::Fill => "fill",
        }
    }
}

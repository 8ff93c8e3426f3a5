//! Entry points inside the crate: their bytes, finding them, and entering an image by them. Their documentation is in the
//! public module [`crate::entries`].
//!
//! | file | part |
//! |---|---|
//! | `payload` | the bytes of the entries |
//! | `find` | finds the entry points of an image |
//! | `validate` | every decision whether given entry points fit the image |
//! | `enter` | the decoder states at the entry points that a request needs |

pub(crate) mod enter;
pub(crate) mod find;
pub(crate) mod payload;
pub(crate) mod validate;

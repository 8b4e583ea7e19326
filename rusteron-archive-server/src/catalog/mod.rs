//! The catalog: what the archive knows of its recordings.

mod catalog;
mod descriptor;
mod error;
mod file;
mod header;
mod recovery;

#[cfg(all(test, unix))]
mod exchange;
#[cfg(test)]
mod model;

pub(crate) use catalog::{Catalog, CatalogSettings, NewRecording};
pub(crate) use descriptor::{Descriptor, NULL_POSITION};
pub(crate) use error::CatalogError;
pub(crate) use file::CATALOG_NAME;

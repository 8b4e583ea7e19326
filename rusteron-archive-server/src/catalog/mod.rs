//! The catalog: what the archive knows of its recordings.

mod catalog;
mod copies;
mod descriptor;
mod edges;
mod entries;
mod error;
mod file;
mod header;
mod migration;
pub(crate) mod recovery;

#[cfg(all(test, unix))]
mod exchange;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub(crate) use catalog::{Catalog, CatalogSettings, NewRecording};
pub use descriptor::RecordingState;
pub(crate) use descriptor::{Descriptor, NULL_POSITION};
pub use entries::RecordingEntry;
pub(crate) use entries::{Entries, EntryOffset};
pub(crate) use error::CatalogError;
pub(crate) use file::CATALOG_NAME;
pub(crate) use migration::{INTENT_NAME, Migration};

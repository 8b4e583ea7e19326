//! The codecs of the program `typed_sbe`. Each other program is one file in `src/bin`.

#[cfg(feature = "libraries")]
#[allow(missing_docs)]
pub mod market_data;

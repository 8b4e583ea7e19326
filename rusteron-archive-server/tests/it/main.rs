//! Archive servers, and the programs that run them. Modules mirror `src/`.

#[cfg(feature = "binary")]
mod program;

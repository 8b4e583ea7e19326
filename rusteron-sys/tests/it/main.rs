//! Linking, scanners, the lookup of Aeron's sources, and drift tests of bindings and build.

mod bindings_drift;
mod cmake_parity;
mod linking;
mod scanners;
mod source_lookup;
mod support;

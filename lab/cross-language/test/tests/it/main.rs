//! Every caller against every server. `lab/cross-language/build` builds the programs.

mod callers;
mod faults;
mod limits;
mod measuring;
mod raw_client;
mod results;

/// Defines a test for each server, in a module of the server's name.
macro_rules! for_each_server {
    ($($test:ident)*) => {
        mod rust_server {
            $(#[test]
            fn $test() {
                super::$test(cross_language_test::programs::Language::Rust);
            })*
        }

        mod java_server {
            $(#[test]
            fn $test() {
                super::$test(cross_language_test::programs::Language::Java);
            })*
        }

        mod python_server {
            $(#[test]
            fn $test() {
                super::$test(cross_language_test::programs::Language::Python);
            })*
        }
    };
}

use for_each_server;

//! Equal results of all callers in the service's own process, which `cross-language/in-process/build` builds.

use cross_language_test::in_process::{IN_PROCESS, InProcess};

use crate::measuring::measures;

#[test]
#[ignore = "needs in-process/build"]
fn binary() {
    for caller in IN_PROCESS {
        println!("{caller:?}");
        caller.check("binary");
    }
}

#[test]
#[ignore = "needs in-process/build"]
fn json() {
    for caller in IN_PROCESS {
        println!("{caller:?}");
        caller.check("json");
    }
}

#[test]
#[ignore = "needs in-process/build"]
fn without_encoding() {
    InProcess::Rust.check("none");
}

#[test]
#[ignore = "needs in-process/build"]
fn measuring() {
    for caller in IN_PROCESS {
        println!("{caller:?}");
        measures(|options| caller.command(options));
    }
}

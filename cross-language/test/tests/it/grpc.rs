//! Equal results of all callers over gRPC from all servers, which `cross-language/grpc/build` builds.

use cross_language_test::grpc::{LANGUAGES, Language};
use rusteron_test_support::free_port;

/// Defines the tests of a server's language.
macro_rules! for_each_language {
    ($($module:ident $language:ident)*) => {
        $(mod $module {
            use super::*;

            #[test]
            #[ignore = "needs grpc/build"]
            fn over_unix_socket() {
                super::over_unix_socket(Language::$language);
            }

            #[test]
            #[ignore = "needs grpc/build"]
            fn over_tcp() {
                check(Language::$language, Language::Rust, &format!("127.0.0.1:{}", free_port()));
            }
        })*
    };
}

for_each_language! { rust_server Rust java_server Java python_server Python go_server Go }

fn over_unix_socket(server: Language) {
    let dir = tempfile::tempdir().unwrap();
    for caller in LANGUAGES {
        println!("{caller:?}");
        check(server, caller, &format!("unix:{}/{caller:?}", dir.path().display()));
    }
}

/// Objects belong to the server. Therefore each caller has a new one.
fn check(server: Language, caller: Language, address: &str) {
    let _server = server.start_server(address, &[]);
    caller.check(address);
}

/// The other ways of serving, which the measurements compare.
#[test]
#[ignore = "needs grpc/build"]
fn other_ways_of_serving_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    for (server, options) in
        [(Language::Rust, ["--runtime", "multi-thread"]), (Language::Python, ["--kind", "threads"])]
    {
        let address = format!("unix:{}/{server:?}", dir.path().display());
        let _server = server.start_server(&address, &options);
        Language::Rust.check(&address);
    }
}

//! Puts functions of `src/guard.rs` and `src/loopback.rs` in front of those of the C library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for function in ["mmap64", "munmap", "getaddrinfo", "inet_pton"] {
            println!("cargo::rustc-link-arg-bins=-Wl,--wrap={function}");
        }
    }
}

set positional-arguments

# List the recipes
default:
    @just --list --unsorted

# Type-check every crate, program and test
[group('check')]
check:
    cargo check --workspace --all-targets

# Check the formatting and run clippy; a warning is an error
[group('check')]
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Run all tests, as in the README
[group('check')]
test:
    cargo test --workspace

# Build the documentation; a warning is an error
[group('check')]
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Run CI: all steps, named steps, or those that changes since main concern (`--changed`)
[group('check')]
ci *args:
    .ci/run "$@"

# Run tests under `address`, `thread` (clang 22), `valgrind` (3.19) or `miri` (nightly): use after free, leaks, races
[group('check further')]
sanitize tool *args:
    .ci/sanitize "$@"

# Run the client's and driver's tests for Linux on `arm64` under qemu, or check all crates for `macos`
[group('check further')]
cross-check platform *args:
    platform=$1; shift; .ci/"$platform" "$@"

# Fuzz a target or `all` for some seconds, or run inputs again: TARGET SECONDS|FILE... (clang 22)
[group('check further')]
fuzz *args:
    .ci/fuzz "$@"

# Compare the bindings with the headers and the build's table with CMake (libclang, cmake 3.30)
[group('check further')]
drift:
    cargo test -p rusteron-sys --features bindgen,driver,archive -- --nocapture

# Run all tests of cluster client and services: failovers of three nodes, modules of two releases (Java, Maven; minutes)
[group('check further')]
test-cluster *args:
    RUSTERON_REQUIRE_JAVA=1 cargo test -p rusteron-cluster --test it -- --include-ignored "$@"

# Kill and pause `clients` with their driver, or the members of a `cluster`, and check every message (Linux; minutes)
[group('check further')]
survival *args:
    cargo run --release -p rusteron-survival -- "$@"

# Run Aeron's own tests of its C and C++ archive clients, or by `--java-suite` of its archive, against ours or, with `--java`, Java's (cmake 3.30, g++; JDK, Maven; minutes)
[group('check further')]
test-aeron-archive *args:
    .ci/aeron-archive-tests "$@"

# Record, replay and compare 10 million messages, and merge 100 times under load (Java, 9 GB of disk; minutes)
[group('check further')]
prove-archive-integrity:
    RUSTERON_REQUIRE_JAVA=1 cargo test --release -p rusteron-archive --test it integrity:: -- --ignored --nocapture --test-threads 1

# Run the media driver in Rust's process
[group('run')]
run-aeron-media-driver-rust *args:
    cargo run --release -p rusteron-media-driver --bin media_driver -- "$@"

# Inspect an Aeron directory: `just rusteron stat --watch`
[group('run')]
rusteron *args:
    cargo run --release -p rusteron-tools --bin rusteron -- "$@"

# Run Java's media driver; takes properties such as -Daeron.dir=/dev/shm/x
[group('run')]
run-aeron-media-driver-java *args:
    lab/java/run Launch.java "$@"

# Run Java's archive with its media driver, on port 8010; takes properties such as -Daeron.archive.dir=/tmp/x
[group('run')]
run-archive-java *args:
    lab/java/run Launch.java archive -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0 "$@"

# Run a cluster of Java's consensus modules, with archives and services in Java or, with `--rust`, in Rust
[group('run')]
run-cluster *args:
    case " $* " in *" --rust "*) cargo build --release -p rusteron-examples -p rusteron-archive-server --features rusteron-examples/cluster ;; esac
    lab/java/run-cluster "$@"

# Rewrite the committed bindings from Aeron's headers (libclang)
[group('make')]
bindings:
    RUSTERON_UPDATE_BINDINGS=1 cargo test -p rusteron-sys --features bindgen,driver,archive --test it bindings_drift::

# Move to another release of Aeron, or go on with it: `just update-aeron 1.55.0`
[group('make')]
update-aeron version:
    .ci/update-aeron "$1"

# Make the .crate files of the last commit, Aeron's C sources included, in target/package
[group('make')]
package:
    .ci/package

# Python: `test`, `wheel` (3.9 and later, in rusteron-python/dist) or `benchmark` the package (pip, venv)
[group('make')]
python command *args:
    .ci/python "$@"

# Clone Aeron 1.54.0 into aeron/, which the next build uses
[group('make')]
aeron-checkout:
    git clone --depth 1 --branch 1.54.0 https://github.com/aeron-io/aeron.git aeron && touch rusteron-sys/build/main.rs

# Compare with C and Java: `just benchmark --help` lists the benchmarks, `just benchmark NAME --help` their options; `render` renders the pages
[group('benchmarks')]
benchmark *args:
    cargo build --release -p rusteron-media-driver --bin media_driver
    cargo run --release -p rusteron-benchmarks -- "$@"

# Compare README's command with C, also link-time optimised (clang-22, lld-22), and Aeron's Java sample
[group('benchmarks')]
benchmark-headline *args:
    lab/benchmarks/headline "$@"

# Count the instructions per message, in Rust and in C, and check them against bounds (needs valgrind); results in target/benchmarks
[group('benchmarks')]
benchmark-instructions *args:
    .ci/instructions "$@"

# Run every caller of the cross-language service against every server (needs Java, Maven, Go, Python, protobuf-c); `--ignored` after `lab/cross-language/build grpc` tests the callers over gRPC
[group('cross-language')]
cross-language-test *args:
    lab/cross-language/build
    cargo test --manifest-path lab/cross-language/Cargo.toml -- "$@"

# Measure the cross-language service over Aeron, gRPC and in one process in turn, an hour or two on a quiet machine (needs what cross-language-test needs; Linux); `--help` lists the options
[group('cross-language')]
benchmark-cross-language *args:
    lab/cross-language/build --release rust java python c go grpc
    cargo build --release -p cross-language-test --features measure --manifest-path lab/cross-language/Cargo.toml
    lab/cross-language/target/release/measure "$@"

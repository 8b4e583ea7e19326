set positional-arguments

# List the recipes
default:
    @just --list

# Compile every crate and program
build:
    cargo build --workspace --all-targets

# Type-check every crate, program and test
check:
    cargo check --workspace --all-targets

# Run all tests, as in the README
test:
    cargo test --workspace

# Check the formatting (`cargo fmt --all` applies it)
fmt:
    cargo fmt --all --check

# Run clippy; a warning is an error
clippy:
    cargo clippy --workspace --all-targets -- -D warnings

# Check the formatting and run clippy
lint: fmt clippy

# Build the documentation; a warning is an error
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Rewrite the committed bindings from Aeron's headers (needs libclang)
bindings:
    RUSTERON_UPDATE_BINDINGS=1 cargo test -p rusteron-sys --features bindgen,driver,archive --test it bindings_drift::

# Compare the bindings with the headers and the table with CMake (needs libclang and cmake 3.30)
drift:
    cargo test -p rusteron-sys --features bindgen,driver,archive -- --nocapture

# Move to another release of Aeron: `just update-aeron 1.55.0` (needs libclang and cmake 3.30)
update-aeron version:
    .ci/update-aeron "$1"

# Make the .crate files of the last commit, Aeron's C sources included, in target/package
package:
    .ci/package

# Run every caller of the cross-language service against every server (needs Java, Maven, Go, Python); `--ignored` after `cross-language/build grpc` tests the callers over gRPC
cross-language-test *args:
    cross-language/build
    cargo test --manifest-path cross-language/Cargo.toml -- "$@"

# Record, replay and compare 10 million messages, and merge 100 times under load (needs Java, 9 GB of disk and minutes)
prove-archive-integrity:
    RUSTERON_REQUIRE_JAVA=1 cargo test --release -p rusteron-archive --test it integrity:: -- --ignored --nocapture --test-threads 1

# Run all tests of cluster client and services: three-node failovers, and consensus modules of two releases (needs Java and Maven, minutes)
test-cluster *args:
    RUSTERON_REQUIRE_JAVA=1 cargo test -p rusteron-cluster --test it -- --include-ignored "$@"

# Kill, pause and starve clients and driver for a minute, and check every message (Linux; full file systems need root); `--help` lists the options
prove-survival *args:
    cargo run --release -p rusteron-survival --bin prove_survival -- "$@"

# Kill and pause the processes of a cluster with Rust services for two minutes, and check every answer and state (Linux, Java); `--help` lists the options
prove-cluster-survival *args:
    cargo run --release -p rusteron-survival --bin prove_cluster_survival -- "$@"

# Run the client's, driver's and archive's tests under AddressSanitizer and LeakSanitizer (needs clang 22)
test-address-sanitizer *args:
    .ci/sanitize address "$@"

# Run the client's and driver's tests under ThreadSanitizer (needs clang 22)
test-thread-sanitizer *args:
    .ci/sanitize thread "$@"

# Run the client's and driver's tests under valgrind's memcheck (needs valgrind 3.19)
test-valgrind *args:
    .ci/sanitize valgrind "$@"

# Run the client's and driver's tests for Linux on arm64 under qemu (needs gcc-aarch64-linux-gnu, qemu-user, Linux 6.7)
test-arm64 *args:
    .ci/arm64 "$@"

# Check every crate, program and test for macOS on arm64 (needs the Python package ziglang)
check-macos *args:
    .ci/macos "$@"

# Run tests of code that calls no C function under Miri (needs nightly with miri and rust-src)
test-miri *args:
    .ci/miri "$@"

# Fuzz one target, or run inputs again: `just fuzz TARGET SECONDS|FILE...` (needs clang 22)
fuzz *args:
    .ci/fuzz "$@"

# Fuzz every target for the given seconds, as many at a time as cores (needs clang 22)
fuzz-all seconds="30":
    .ci/fuzz all "$1"

# Run the C media driver as a process of its own; `--help` lists the options
run-aeron-media-driver-rust *args:
    cargo run --release -p rusteron-media-driver --bin media_driver -- "$@"

# Inspect an Aeron directory: `just rusteron stat --watch`; `--help` lists the commands
rusteron *args:
    cargo run --release -p rusteron-tools --bin rusteron -- "$@"

# Run the Java media driver as a process of its own; takes properties such as -Daeron.dir=/dev/shm/x
run-aeron-media-driver-java *args:
    java/run io.aeron.driver.MediaDriver "$@"

# Run the Java archive, on port 8010, with its media driver; takes properties such as -Daeron.archive.dir=/tmp/x
run-archive-java *args:
    java/run io.aeron.archive.ArchivingMediaDriver -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0 "$@"

# Run a cluster of one or three Java members with an echo service; `--help` lists the options, and how to kill a leader
run-cluster-java *args:
    java/run-cluster "$@"

# Run a cluster of three members whose service is in Rust, beside Java's consensus modules; `--help` lists the options
run-cluster-rust *args:
    cargo build --release -p rusteron-examples --features cluster
    java/run-cluster --rust "$@"

# Compare with C and Java: `just benchmark --help` lists the benchmarks, `just benchmark NAME --help` their options; `render` renders the pages
benchmark *args:
    cargo build --release -p rusteron-media-driver --bin media_driver
    cargo run --release -p rusteron-benchmarks -- "$@"

# Compare README's command with C, also link-time optimised (clang-22, lld-22), and Aeron's Java sample
benchmark-headline *args:
    benchmarks/headline "$@"

# Measure the cross-language service over Aeron, gRPC and in one process in turn, an hour or two on a quiet machine (needs what cross-language-test needs; Linux); `--help` lists the options
benchmark-cross-language *args:
    cross-language/build --release rust java python c go grpc
    cargo build --release -p cross-language-test --features measure --manifest-path cross-language/Cargo.toml
    cross-language/target/release/measure "$@"

# Count the instructions per message, in Rust and in C, and check them against bounds (needs valgrind); results in target/benchmarks
benchmark-instructions *args:
    .ci/instructions "$@"

# Generate the SBE codecs of the example `typed_sbe` again, from its schema (needs Java and Maven)
sbe-codecs:
    examples/src/market_data/generate

# Build the Python package and run its tests (needs pip and venv; the archive's tests need Java)
python-test *args:
    .ci/python test "$@"

# Build a wheel for Python 3.9 and later, in rusteron-python/dist (needs pip and venv)
python-wheel:
    .ci/python wheel

# Measure the Python package: throughput singly and in batches, round trips; `--help` lists the options
benchmark-python *args:
    .ci/python benchmark "$@"

# Clone Aeron 1.54.0 into aeron/, which the next build uses
aeron-checkout:
    git clone --depth 1 --branch 1.54.0 https://github.com/aeron-io/aeron.git aeron && touch rusteron-sys/build/main.rs

# Run all steps of CI
ci:
    bash .ci/run

# Delete all build output
clean:
    cargo clean

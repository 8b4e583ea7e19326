//! Machine, commit and versions, which a reader of a result needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use rusteron_benchmarks::reports::host;
use serde_json::{Value, json};

/// Describes commit, machine and versions.
pub(crate) fn describe() -> Value {
    json!({
        "host": host::describe(),
        "kernel": output("uname", &["-r"]),
        "versions": versions(),
        "commit": commit(),
        "date": output("date", &["-u", "+%Y-%m-%d"]),
    })
}

/// The commit, with `-dirty` behind it if files differ from it.
pub(crate) fn commit() -> Option<String> {
    output("git", &["describe", "--always", "--dirty", "--exclude", "*"])
}

/// Versions of Aeron, compilers and runtimes, and of the libraries of gRPC as their lock files say.
pub(crate) fn versions() -> Value {
    let mut versions = host::versions();
    let java_home = std::env::var("JAVA_HOME").map_or(String::new(), |home| home + "/bin/");
    let in_process = output(&in_project("in-process/java/jdk"), &[]);
    let programs = [
        ("java", output(&format!("{java_home}java"), &["-version"])),
        (
            "java_in_process",
            in_process.and_then(|home| output(&format!("{home}/bin/java"), &["-version"])),
        ),
        ("python", output("python3", &["--version"])),
        ("go", output("go", &["version"])),
        ("cc", output("cc", &["--version"])),
    ];
    let libraries = [
        ("tonic", locked("grpc/rust/Cargo.lock", "name = \"tonic\"\nversion = \"", "\"")),
        ("grpc-java", locked("grpc/java/pom.xml", "<grpc.version>", "<")),
        ("grpcio", locked("grpc/python/requirements.txt", "grpcio==", "\n")),
        ("grpc-go", locked("grpc/go/go.mod", "google.golang.org/grpc v", "\n")),
        ("aeron-java", locked("java/pom.xml", "<aeron.version>", "<")),
    ];
    for (name, version) in programs.into_iter().chain(libraries) {
        versions[name] = json!(version);
    }
    versions
}

fn in_project(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// The text between two others in a file of this folder.
fn locked(path: &str, before: &str, behind: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new(&in_project(path))).ok()?;
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(behind)?.0.to_owned())
}

/// The first line that a program prints.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| !line.starts_with("Picked up")).map(str::to_owned)
}

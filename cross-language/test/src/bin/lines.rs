//! Counts the lines that each caller, server and binding needs, without blanks, comments and tests. Prints tables in
//! Markdown. Generated code, build scripts and the modes of measuring are not counted.

use std::error::Error;
use std::fs;
use std::path::Path;

/// A program, and the files that it needs, by what they are for.
struct Row {
    name: &'static str,
    /// Schemas and headers.
    interface: &'static [&'static str],
    /// Arguments and results, and their encodings. JSON is a file of its own, except in C.
    bodies: &'static [&'static str],
    json: &'static [&'static str],
    /// Envelopes, connections, calls, and the program itself.
    calls: &'static [&'static str],
}

const SCHEMA: &[&str] = &["schema.xml"];
const PROTO: &[&str] = &["grpc/service.proto"];

const RUST_BODIES: &[&str] =
    &["rust/src/contract.rs", "rust/src/value.rs", "rust/src/body.rs", "rust/src/binary.rs"];
const JAVA_BODIES: &[&str] = &[
    "java/src/crosslanguage/Contract.java",
    "java/src/crosslanguage/Kind.java",
    "java/src/crosslanguage/Bodies.java",
    "java/src/crosslanguage/BinaryBodies.java",
    "java/src/crosslanguage/CanonicalText.java",
    "java/src/crosslanguage/MalformedException.java",
];
const PYTHON_BODIES: &[&str] = &[
    "python/cross_language/contract.py",
    "python/cross_language/body.py",
    "python/cross_language/binary_body.py",
    "python/cross_language/canonical.py",
];
const C_BODIES: &[&str] = &["c/body.h", "c/body.c"];
const GO_BODIES: &[&str] = &[
    "go/service/contract.go",
    "go/service/body.go",
    "go/service/binary.go",
    "go/service/canonical.go",
];

const AERON_CALLERS: &[Row] = &[
    Row {
        name: "Rust",
        interface: SCHEMA,
        bodies: RUST_BODIES,
        json: &["rust/src/json.rs"],
        calls: &["rust/src/envelope.rs", "rust/src/caller.rs", "rust/src/bin/caller.rs"],
    },
    Row {
        name: "Java",
        interface: SCHEMA,
        bodies: JAVA_BODIES,
        json: &["java/src/crosslanguage/JsonBodies.java"],
        calls: &[
            "java/src/crosslanguage/Envelopes.java",
            "java/src/crosslanguage/ServiceCaller.java",
            "java/src/crosslanguage/CallException.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/Caller.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Python",
        interface: SCHEMA,
        bodies: PYTHON_BODIES,
        json: &["python/cross_language/json_body.py"],
        calls: &[
            "python/cross_language/envelope.py",
            "python/cross_language/registration.py",
            "python/cross_language/service_caller.py",
            "python/cross_language/caller.py",
            "python/cross_language/options.py",
        ],
    },
    Row {
        name: "C",
        interface: SCHEMA,
        bodies: C_BODIES,
        json: &[],
        calls: &["c/session.h", "c/session.c", "c/caller.c"],
    },
    Row {
        name: "Go",
        interface: SCHEMA,
        bodies: GO_BODIES,
        json: &["go/service/json.go"],
        calls: &[
            "c/session.h",
            "c/session.c",
            "go/service/session.c",
            "go/service/session.go",
            "go/service/envelope.go",
            "go/service/caller.go",
            "go/main.go",
        ],
    },
];

const AERON_SERVERS: &[Row] = &[
    Row {
        name: "Rust",
        interface: SCHEMA,
        bodies: RUST_BODIES,
        json: &["rust/src/json.rs"],
        calls: &[
            "rust/src/envelope.rs",
            "rust/src/service.rs",
            "rust/src/server.rs",
            "rust/src/bin/server.rs",
        ],
    },
    Row {
        name: "Java",
        interface: SCHEMA,
        bodies: JAVA_BODIES,
        json: &["java/src/crosslanguage/JsonBodies.java"],
        calls: &[
            "java/src/crosslanguage/Envelopes.java",
            "java/src/crosslanguage/Objects.java",
            "java/src/crosslanguage/Session.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/Server.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Python",
        interface: SCHEMA,
        bodies: PYTHON_BODIES,
        json: &["python/cross_language/json_body.py"],
        calls: &[
            "python/cross_language/envelope.py",
            "python/cross_language/objects.py",
            "python/cross_language/registration.py",
            "python/cross_language/session.py",
            "python/cross_language/server.py",
            "python/cross_language/options.py",
        ],
    },
];

/// The server's side of all calls in one process but Rust's own.
const HEADER: &[&str] = &["in-process/cross_language.h"];
const LIBRARY: &[Row] = &[
    Row {
        name: "Service, for Rust",
        interface: &[],
        bodies: RUST_BODIES,
        json: &["rust/src/json.rs"],
        calls: &["rust/src/service.rs", "rust/src/in_process.rs"],
    },
    Row {
        name: "Service, as a C library",
        interface: HEADER,
        bodies: RUST_BODIES,
        json: &["rust/src/json.rs"],
        calls: &["rust/src/service.rs", "rust/src/in_process.rs", "in-process/library/src/lib.rs"],
    },
    Row {
        name: "Service, as a Python module",
        interface: &[],
        bodies: RUST_BODIES,
        json: &["rust/src/json.rs"],
        calls: &["rust/src/service.rs", "rust/src/in_process.rs", "in-process/pyo3/src/lib.rs"],
    },
];

const IN_PROCESS_CALLERS: &[Row] = &[
    Row {
        name: "Rust",
        interface: &[],
        bodies: &[],
        json: &[],
        calls: &["in-process/rust/src/main.rs"],
    },
    Row {
        name: "C",
        interface: HEADER,
        bodies: C_BODIES,
        json: &[],
        calls: &["in-process/c/caller.c"],
    },
    Row {
        name: "Java, JNI",
        interface: HEADER,
        bodies: JAVA_BODIES,
        json: &["java/src/crosslanguage/JsonBodies.java"],
        calls: &[
            "in-process/java/jni.c",
            "in-process/java/src/crosslanguage/InProcessConnection.java",
            "in-process/java/src/crosslanguage/JniCaller.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/CallException.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Java, foreign function API",
        interface: HEADER,
        bodies: JAVA_BODIES,
        json: &["java/src/crosslanguage/JsonBodies.java"],
        calls: &[
            "in-process/java/src/crosslanguage/InProcessConnection.java",
            "in-process/java/src/crosslanguage/FfmCaller.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/CallException.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Python, ctypes",
        interface: HEADER,
        bodies: PYTHON_BODIES,
        json: &["python/cross_language/json_body.py"],
        calls: &["in-process/python/ctypes_session.py", "in-process/python/caller.py"],
    },
    Row {
        name: "Python, PyO3",
        interface: &[],
        bodies: PYTHON_BODIES,
        json: &["python/cross_language/json_body.py"],
        calls: &["in-process/python/caller.py"],
    },
    Row {
        name: "Go, cgo",
        interface: HEADER,
        bodies: GO_BODIES,
        json: &["go/service/json.go"],
        calls: &[
            "in-process/go/session.h",
            "in-process/go/session.go",
            "in-process/go/callback.go",
            "in-process/go/main.go",
        ],
    },
];

const GRPC_CALLERS: &[Row] = &[
    Row {
        name: "Rust",
        interface: PROTO,
        bodies: RUST_GRPC_BODIES,
        json: &[],
        calls: &["grpc/rust/src/caller.rs", "grpc/rust/src/bin/grpc_caller.rs"],
    },
    Row {
        name: "Java",
        interface: PROTO,
        bodies: JAVA_GRPC_BODIES,
        json: &[],
        calls: &[
            "grpc/java/src/crosslanguage/GrpcCaller.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/CallException.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Python",
        interface: PROTO,
        bodies: PYTHON_GRPC_BODIES,
        json: &[],
        calls: &["grpc/python/cross_language_grpc/caller.py", "python/cross_language/options.py"],
    },
    Row {
        name: "Go",
        interface: PROTO,
        bodies: GO_GRPC_BODIES,
        json: &[],
        calls: &["grpc/go/caller/main.go"],
    },
];

const GRPC_SERVERS: &[Row] = &[
    Row {
        name: "Rust",
        interface: PROTO,
        bodies: RUST_GRPC_BODIES,
        json: &[],
        calls: &[
            "rust/src/service.rs",
            "grpc/rust/src/server.rs",
            "grpc/rust/src/bin/grpc_server.rs",
        ],
    },
    Row {
        name: "Java",
        interface: PROTO,
        bodies: JAVA_GRPC_BODIES,
        json: &[],
        calls: &[
            "java/src/crosslanguage/Objects.java",
            "grpc/java/src/crosslanguage/GrpcServer.java",
            "java/src/crosslanguage/FailureException.java",
            "java/src/crosslanguage/Options.java",
        ],
    },
    Row {
        name: "Python",
        interface: PROTO,
        bodies: PYTHON_GRPC_BODIES,
        json: &[],
        calls: &[
            "python/cross_language/objects.py",
            "grpc/python/cross_language_grpc/server.py",
            "python/cross_language/options.py",
        ],
    },
    Row {
        name: "Go",
        interface: PROTO,
        bodies: GO_GRPC_BODIES,
        json: &[],
        calls: &["grpc/go/server/objects.go", "grpc/go/server/main.go"],
    },
];

const RUST_GRPC_BODIES: &[&str] = &[
    "rust/src/contract.rs",
    "rust/src/value.rs",
    "rust/src/body.rs",
    "grpc/rust/src/lib.rs",
    "grpc/rust/src/messages.rs",
];
const JAVA_GRPC_BODIES: &[&str] = &[
    "java/src/crosslanguage/Contract.java",
    "java/src/crosslanguage/Kind.java",
    "java/src/crosslanguage/CanonicalText.java",
    "java/src/crosslanguage/MalformedException.java",
    "grpc/java/src/crosslanguage/GrpcMessages.java",
];
const PYTHON_GRPC_BODIES: &[&str] = &[
    "python/cross_language/contract.py",
    "python/cross_language/body.py",
    "python/cross_language/canonical.py",
    "grpc/python/cross_language_grpc/messages.py",
];
const GO_GRPC_BODIES: &[&str] =
    &["go/service/contract.go", "go/service/canonical.go", "grpc/go/messages/messages.go"];

fn main() -> Result<(), Box<dyn Error>> {
    let tables = [
        ("Caller over Aeron", AERON_CALLERS),
        ("Server over Aeron", AERON_SERVERS),
        ("Caller over gRPC", GRPC_CALLERS),
        ("Server over gRPC", GRPC_SERVERS),
        ("In process", LIBRARY),
        ("Caller in process", IN_PROCESS_CALLERS),
    ];
    for (title, rows) in tables {
        println!("| {title} | Interface | Bodies | JSON | Calls | Sum | Languages |");
        println!("|---|--:|--:|--:|--:|--:|---|");
        for row in rows {
            let parts = [row.interface, row.bodies, row.json, row.calls];
            let counts = parts.map(count).into_iter().collect::<Result<Vec<_>, _>>()?;
            print!("| {} |", row.name);
            for count in &counts {
                print!(" {count} |");
            }
            println!(" {} | {} |", counts.iter().sum::<usize>(), languages(&parts.concat())?);
        }
        println!();
    }
    Ok(())
}

fn count(files: &[&str]) -> Result<usize, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut lines = 0;
    for file in files {
        let text =
            fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        lines += code_lines(&text, syntax(file)?);
    }
    Ok(lines)
}

/// A language, the beginning of a comment that ends with its line, and the ends of a longer comment.
struct Syntax {
    language: &'static str,
    line: Option<&'static str>,
    block: (&'static str, &'static str),
}

fn syntax(file: &str) -> Result<Syntax, String> {
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
    let (language, line, block) = match extension {
        Some("rs") => ("Rust", Some("//"), ("/*", "*/")),
        Some("java") => ("Java", Some("//"), ("/*", "*/")),
        Some("c" | "h") => ("C", Some("//"), ("/*", "*/")),
        Some("go") => ("Go", Some("//"), ("/*", "*/")),
        Some("proto") => ("Protocol Buffers", Some("//"), ("/*", "*/")),
        // A text at the beginning of a line is documentation.
        Some("py") => ("Python", Some("#"), ("\"\"\"", "\"\"\"")),
        Some("xml") => ("SBE's XML", None, ("<!--", "-->")),
        _ => return Err(format!("{file}: a language that this program does not know")),
    };
    Ok(Syntax { language, line, block })
}

fn languages(files: &[&str]) -> Result<String, String> {
    let mut languages = Vec::new();
    for file in files {
        let language = syntax(file)?.language;
        if !languages.contains(&language) {
            languages.push(language);
        }
    }
    Ok(languages.join(", "))
}

/// Counts lines with code. Comments are recognised where a line begins.
fn code_lines(text: &str, syntax: Syntax) -> usize {
    let (open, close) = syntax.block;
    let mut lines = 0;
    let mut is_in_comment = false;
    for line in text.lines() {
        let mut rest = line.trim();
        // The tests of a Rust module are its end.
        if rest == "#[cfg(test)]" {
            break;
        }
        if !is_in_comment {
            if rest.is_empty() || syntax.line.is_some_and(|comment| rest.starts_with(comment)) {
                continue;
            }
            let Some(comment) = rest.strip_prefix(open) else {
                lines += 1;
                continue;
            };
            rest = comment;
            is_in_comment = true;
        }
        if let Some((_, code)) = rest.split_once(close) {
            is_in_comment = false;
            lines += usize::from(!code.trim().is_empty());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_are_not_counted() {
        let rust = "//! A\n\nuse b; // c\n/* d\n e */\n/* f */ g();\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(code_lines(rust, syntax("a.rs").unwrap()), 2);
        let python = "\"\"\"A.\n\nB.\n\"\"\"\n\n# c\nd = 1\n\"\"\"E.\"\"\"\n";
        assert_eq!(code_lines(python, syntax("a.py").unwrap()), 1);
        let xml = "<a>\n<!-- b\nc -->\n</a>\n";
        assert_eq!(code_lines(xml, syntax("a.xml").unwrap()), 2);
    }
}

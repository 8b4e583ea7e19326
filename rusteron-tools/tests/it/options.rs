//! The command line.

use crate::support::{COMMANDS, command, run, text_of};

#[test]
fn help_has_examples() {
    let general = text_of(run(command(["--help"])));
    assert!(general.contains("Exit codes:") && general.contains("Examples:"), "{general}");
    for name in COMMANDS.into_iter().chain(["archive", "cluster"]) {
        assert!(general.contains(&format!("  {name} ")), "{general}");
        let help = text_of(run(command([name, "--help"])));
        assert!(help.contains(&format!("  rusteron {name}")), "{help}");
    }
    assert!(text_of(run(command(["--version"]))).contains("+aeron-"));
}

#[test]
fn invalid_exits_2() {
    let cases: [&[&str]; 15] = [
        &[],
        &["state"],
        &["stat", "--interval", "1s"],
        &["stat", "--watch", "--interval", "0s"],
        &["stat", "--type", "sub-position"],
        &["driver", "--token", "x"],
        &["driver", "--pid", "1"],
        &["driver", "--check", "--json"],
        &["stat", "--openmetrics", "--json"],
        &["stat", "--listen", "localhost:x"],
        &["stat", "--listen", "--openmetrics"],
        &["log", "--frames"],
        &["stat", "--driver-timeout", "10"],
        &["archive"],
        &["archive", "tail", "1", "--new", "--from", "0"],
    ];
    for arguments in cases {
        let finished = run(command(arguments));
        assert_eq!(
            (finished.status.code(), finished.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(finished.stderr.contains("Usage:") || finished.stderr.contains("--help"));
    }
}

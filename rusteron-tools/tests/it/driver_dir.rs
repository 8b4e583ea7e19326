//! Directories of drivers that are alive, dead, foreign or missing.

use std::fs;

use serde_json::Value;

use crate::support::{
    COMMANDS, DriverProcess, STREAM_ID, array, await_some, await_that, command, connect,
    connected_pair, has_java, java_driver_with, json, launch, media_driver_beside, offer, run,
    rusteron, text, text_of,
};

#[test]
fn no_driver_exits_1_or_3() {
    let home = tempfile::tempdir().expect("a directory");
    for dir in [home.path(), &home.path().join("nobody")] {
        for command in COMMANDS {
            let finished = run(rusteron(dir, [command]));
            if command == "driver" {
                assert_eq!((finished.status.code(), finished.stderr.as_str()), (Some(3), ""));
                assert!(finished.stdout.contains("no driver"), "{finished:?}");
            } else {
                assert_eq!(
                    (finished.status.code(), finished.stdout.as_str()),
                    (Some(1), ""),
                    "{command}"
                );
                let dir = dir.display().to_string();
                assert!(finished.stderr.contains(&dir), "{finished:?}");
            }
        }
    }
}

/// A foreign file, a file as the directory, and a directory without permissions.
#[cfg(unix)]
#[test]
fn unreadable_directory_is_a_failure() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().expect("a directory");
    let [foreign, file, closed] = ["foreign", "file", "closed"].map(|name| home.path().join(name));
    fs::create_dir(&foreign).expect("a directory");
    fs::write(foreign.join("cnc.dat"), b"not what is expected ".repeat(1000)).expect("a file");
    fs::write(&file, "").expect("a file");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("no permissions");
    let is_a_file = format!("{} is a file", file.display());
    let name = closed.display().to_string();
    let mut cases = vec![(&foreign, "incompatible driver"), (&file, &is_a_file)];
    // Permissions do not stop the superuser.
    cases.extend(fs::read_dir(&closed).is_err().then_some((&closed, name.as_str())));
    for (dir, reason) in cases {
        for arguments in [
            &["stat"][..],
            &["stat", "--openmetrics"],
            &["errors"],
            &["loss"],
            &["streams"],
            &["clients"],
            &["driver"],
            &["driver", "--check"],
        ] {
            let finished = run(rusteron(dir, arguments));
            assert_eq!(finished.status.code(), Some(1), "{arguments:?}: {finished:?}");
            let is_up_0 = finished.stdout.contains("\naeron_up 0\n");
            assert_eq!(is_up_0, arguments.len() == 2 && arguments[0] == "stat", "{finished:?}");
            assert!(is_up_0 || finished.stdout.is_empty(), "{finished:?}");
            assert!(finished.stderr.starts_with("rusteron: "), "{finished:?}");
            assert!(finished.stderr.contains(reason), "{arguments:?}: {finished:?}");
            assert!(!finished.stderr.contains("no driver"), "{finished:?}");
        }
    }
}

#[test]
fn environment_names_directory() {
    let driver = launch();
    let mut command = command(["driver"]);
    command.env("AERON_DIR", driver.aeron_dir());
    let text = text_of(run(command));
    assert!(text.contains(&driver.aeron_dir().display().to_string()), "{text}");
}

#[test]
fn killed_driver_is_dead_and_readable() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let program = media_driver_beside(env!("CARGO_BIN_EXE_rusteron"));
    let mut driver = DriverProcess::start(program, &dir, &[]);
    driver.await_line("media driver ready");
    let pid = driver.id();
    let status = json(&dir, &["driver"]);
    assert_eq!((&status["state"], &status["pid"]), (&"alive".into(), &pid.into()));

    let aeron = connect(&dir);
    let (mut publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    let position = offer(&mut publication, b"last words");
    let id = publication.original_registration_id();
    driver.kill();

    // Where the kernel cannot tell, it would take 10 s with the timeout that clients have.
    let dead = ["--driver-timeout", "100ms"];
    let finished = await_some("the driver is known to be dead", || {
        let finished = run(rusteron(&dir, [&["driver", "--json"][..], &dead].concat()));
        assert_eq!(finished.stderr, "");
        (finished.status.code() == Some(3)).then_some(finished)
    });
    let status: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!((&status["state"], &status["pid"]), (&"dead".into(), &pid.into()));

    for command in ["stat", "streams", "errors", "loss"] {
        let found = json(&dir, &[&[command][..], &dead].concat());
        assert_eq!(found["driver"]["state"], "dead", "{command}");
    }
    let stat = json(&dir, &["stat"]);
    assert!(array(&stat, "counters").len() > 46);
    assert_eq!(array(&json(&dir, &["streams"]), "streams").len(), 1);
    let log = json(&dir, &["log", &id.to_string(), "--payload", "ascii"]);
    assert_eq!(log["log"]["position"], position);
    assert_eq!(array(&log, "entries")[0]["payload"], "last words");
    drop((publication, subscription));
}

#[test]
fn java_driver_is_readable() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    if !has_java() {
        return;
    }
    let mut driver = java_driver_with(&dir, |command| {
        let validator = "io.aeron.driver.DefaultAllowTerminationValidator";
        command.arg(format!("-Daeron.driver.termination.validator={validator}"))
    });
    let pid = driver.id();
    let status = json(&dir, &["driver"]);
    assert_eq!((&status["state"], &status["pid"]), (&"alive".into(), &pid.into()));
    assert!(status["aeron_version"].as_str().is_some_and(|v| v.starts_with("1.")), "{status}");
    assert!(status["start_time"].is_string());

    let aeron = connect(&dir);
    let channel =
        "aeron:ipc?term-length=64k|mtu=1408|init-term-id=5|term-id=7|term-offset=64|ssc=true";
    let (mut publication, subscription) = connected_pair(&aeron, channel);
    let start = publication.position().expect("an open publication");
    let end = offer(&mut publication, b"hello, Java");

    let stat = json(&dir, &["stat", "--label", "bytes sent"]);
    assert_eq!(array(&stat, "counters")[0]["label"], "Bytes sent");
    await_that("the positions", || {
        let streams = json(&dir, &["streams"]);
        let stream = &array(&streams, "streams")[0];
        assert_eq!(stream["stream_id"], STREAM_ID);
        stream["subscriber_backlog"] == end - start
    });

    let clients = json(&dir, &["clients"]);
    let client = &array(&clients, "clients")[0];
    assert_eq!(client["client_id"], aeron.client_id());
    assert_eq!(array(client, "subscriptions")[0]["backlog"], end - start);
    let metrics = text(&dir, &["stat", "--openmetrics"]);
    assert!(metrics.contains("aeron_up 1\n"), "{metrics}");
    let owner =
        format!("aeron_publisher_position_bytes_total{{client_id=\"{}\",", aeron.client_id());
    assert!(metrics.contains(&owner) && metrics.contains("\naeron_errors_total 0\n"), "{metrics}");

    let id = publication.original_registration_id().to_string();
    let log = json(&dir, &["log", &id, "--payload", "ascii"]);
    let about = &log["log"];
    assert_eq!(about["kind"], "exclusive-publication");
    assert_eq!((&about["term_length"], &about["mtu_length"]), (&65536.into(), &1408.into()));
    assert_eq!((&about["initial_term_id"], &about["active_term_count"]), (&5.into(), &2.into()));
    assert_eq!(
        (&about["position"], &about["session_id"]),
        (&end.into(), &publication.session_id().into())
    );
    assert_eq!(
        (&about["sparse"], &about["spies_simulate_connection"]),
        (&true.into(), &true.into())
    );
    let frame = array(&log, "entries").iter().find(|frame| frame["type"] == "data");
    let frame = frame.expect("the frame");
    assert_eq!((&frame["payload"], &frame["position"]), (&"hello, Java".into(), &start.into()));

    aeron
        .add_publication(
            rusteron_client::UncheckedChannel("aeron:ipc?term-length=carrier-pigeons"),
            1,
        )
        .expect_err("an invalid channel");
    let errors = json(&dir, &["errors"]);
    assert!(array(&errors, "errors")[0]["text"].to_string().contains("carrier-pigeon"), "{errors}");
    assert!(array(&json(&dir, &["loss"]), "losses").is_empty());

    drop((publication, subscription, aeron));
    let finished = run(rusteron(&dir, ["driver", "--terminate", "--timeout", "60s"]));
    assert_eq!(
        (finished.status.code(), finished.stderr.as_str()),
        (Some(0), ""),
        "{}",
        finished.stdout
    );
    assert!(driver.wait().success());
}

//! The directory of a driver that is a Java process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{
    STREAM_ID, array, await_some, await_that, connect, connected_pair, has_java, java_run, json,
    offer, run, rusteron,
};

/// The media driver of `java/pom.xml`; killed when this is dropped.
struct JavaDriver(Child);

impl JavaDriver {
    /// `None` where there is no Java, if that is allowed.
    fn start(dir: &Path) -> Option<Self> {
        if !has_java() {
            return None;
        }
        let mut dir_property = std::ffi::OsString::from("-Daeron.dir=");
        dir_property.push(dir);
        let child = Command::new(java_run())
            .args(["io.aeron.driver.MediaDriver", "-Xmx256m"])
            .arg(dir_property)
            .args([
                "-Daeron.threading.mode=SHARED",
                "-Daeron.shared.idle.strategy=backoff",
                "-Daeron.term.buffer.sparse.file=true",
                "-Daeron.driver.termination.validator=io.aeron.driver.DefaultAllowTerminationValidator",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("java/run starts");
        Some(Self(child))
    }
}

impl Drop for JavaDriver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn everything_works_on_the_directory_of_a_java_driver() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let Some(mut driver) = JavaDriver::start(&dir) else { return };
    let pid = driver.0.id();
    let status = await_some("the driver", || {
        let ended = driver.0.try_wait().expect("a status");
        assert_eq!(ended, None, "the Java driver does not start");
        let finished = run(rusteron(&dir, ["driver", "--json"]));
        (finished.code == Some(0))
            .then(|| -> Value { serde_json::from_str(&finished.stdout).expect("JSON") })
    });
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
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
    assert!(driver.0.wait().expect("its end").success());
}

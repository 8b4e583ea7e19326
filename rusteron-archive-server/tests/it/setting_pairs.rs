//! Pairs of settings that are valid one by one. Each archive refuses its pair and names a setting
//! of it, or records, replays and ends.

use std::path::Path;
use std::time::{Duration, Instant};

use rusteron_archive::Archive;
use rusteron_archive_server::ArchiveServerContext;
use rusteron_client::Aeron;
use rusteron_test_support::archive::{record, replay_all};
use rusteron_test_support::{
    DEADLINE, DriverProcess, SettingPairs, SettingValue, command, context, free_port, refused_pair,
};

use crate::support::{ipc_context, recorded};

/// Extremes beside those of numbers, which other settings have.
const OTHERS: [&str; 10] = [
    "10s",
    "aeron:ipc",
    "aeron:udp?endpoint=localhost:0",
    "CRC-32",
    "CRC-32C",
    "DEDICATED",
    "SHARED",
    "noop",
    "spin",
    "sleep-ns",
];

#[test]
fn pairs_are_refused_or_work() {
    // The test itself needs some of them; others take much memory, or refuse recordings or clients.
    let is_left_out = |name: &str| {
        [
            "_DIR",
            "AFFINITY",
            "SUPPLIER",
            "MAX_CONCURRENT",
            "LOW_STORAGE",
            "IDLE_STRATEGY",
            "ENABLED",
        ]
        .iter()
        .any(|part| name.contains(part))
            || ["CONTROL_CHANNEL", "ERROR_BUFFER_LENGTH", "DELETE_ON_START", "CONNECT_TIMEOUT"]
                .iter()
                .any(|end| name.ends_with(end))
    };
    let mut pairs = SettingPairs::default();
    for setting in ArchiveServerContext::settings() {
        if !is_left_out(setting.variable()) {
            pairs.add(setting.variable(), &OTHERS, |value| setting.check(value).is_ok());
        }
    }
    assert!(pairs.count() > 20, "{}", pairs.count());
    pairs.search(fault);
}

fn fault(pair: &[SettingValue; 2]) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("driver");
    let mut program = command(
        env!("CARGO_BIN_EXE_archiving_media_driver"),
        [
            "-Daeron.threading.mode=SHARED",
            "-Daeron.archive.threading.mode=SHARED",
            "-Daeron.archive.recording.events.enabled=true",
        ],
    );
    program.arg(format!("-Daeron.dir={}", dir.display()));
    program.arg(format!("-Daeron.archive.dir={}", home.path().join("archive").display()));
    program.arg(format!(
        "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:{}",
        free_port()
    ));
    program.env("AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL", "aeron:ipc").envs(*pair);
    let mut server = DriverProcess::run(&mut program);
    match exchange(&home.path().join("archive"), &dir, pair, &mut server) {
        Ok(true) => server.signal("TERM"),
        Ok(false) => {
            let (code, errors) = server.end();
            return refused_pair(pair, code, &errors);
        }
        Err(reason) => {
            server.kill();
            return Err(format!("{reason}, {}", server.end().1));
        }
    }
    if !ends(&mut server) {
        server.kill();
        return Err("does not end".to_owned());
    }
    let (code, errors) = server.end();
    (code == 0).then_some(()).ok_or_else(|| format!("ended with {code}, {errors}"))
}

/// Waits for the end of a program. Returns whether it came.
fn ends(server: &mut DriverProcess) -> bool {
    let start = Instant::now();
    while server.try_wait().is_none() {
        if start.elapsed() > DEADLINE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Records and replays over IPC. Returns whether the archive was there.
fn exchange(
    archive_dir: &Path,
    dir: &Path,
    pair: &[SettingValue; 2],
    server: &mut DriverProcess,
) -> Result<bool, String> {
    let start = Instant::now();
    while !archive_dir.join("archive.catalog").exists() {
        if server.try_wait().is_some() {
            return Ok(false);
        }
        if start.elapsed() > DEADLINE {
            return Err("makes no catalog".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // The program may have found what is wrong after it made the catalog, and is about to end.
    let aeron = match Aeron::connect(context(dir)) {
        Ok(aeron) => aeron,
        Err(_) if ends(server) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let mut requests = ipc_context();
    for (name, value) in pair {
        if *name == "AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID" {
            let stream_id = value.parse().expect("a number");
            requests.set_control_request_stream_id(stream_id).expect("a stream id");
        }
    }
    let archive = match Archive::connect(&aeron, requests) {
        Ok(archive) => archive,
        Err(_) if ends(server) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let (_publication, recording_id, _) = record(&archive, 100);
    match replay_all(&archive, recording_id, recorded()) == (0..100).collect::<Vec<_>>() {
        true => Ok(true),
        false => Err("replays something else".to_owned()),
    }
}

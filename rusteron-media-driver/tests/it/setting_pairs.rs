//! Pairs of settings that are valid one by one. Each driver refuses its pair and names a setting of
//! it, or passes messages and ends.

use std::path::Path;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Error, Publication, Subscription};
use rusteron_media_driver::DriverContext;
use rusteron_test_support::{
    DEADLINE, DriverProcess, SettingPairs, SettingValue, context, free_port, media_driver,
    refused_pair,
};

use crate::MEDIA_DRIVER;

#[test]
fn pairs_are_refused_or_work() {
    // What the test itself needs, and what other tests check.
    let is_left_out = |name: &str| {
        ["AERON_DIR", "RUSTERON_", "AERON_PRINT", "AERON_NAME_RESOLVER", "AERON_EVENT"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || ["AFFINITY", "_ARGS", "LIBRARIES", "AERON_DRIVER_TIMEOUT"]
                .iter()
                .any(|part| name.contains(part))
            || name.ends_with("_BUFFER_LENGTH") && !name.contains("TERM_BUFFER")
    };
    let mut pairs = SettingPairs::default();
    for setting in DriverContext::settings().filter(|setting| setting.is_read()) {
        if !is_left_out(setting.variable()) {
            pairs.add(setting.variable(), &[], |value| setting.check(value).is_ok());
        }
    }
    assert!(pairs.count() > 40, "{}", pairs.count());
    pairs.search(fault);
}

fn fault(pair: &[SettingValue; 2]) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("driver");
    let mut command = media_driver(MEDIA_DRIVER);
    command.args(["--threading-mode", "shared", "--dir"]).arg(&dir);
    command.envs(*pair);
    let mut driver = DriverProcess::run(&mut command);
    match exchange(&dir, &mut driver) {
        Ok(true) => driver.signal("TERM"),
        Ok(false) => {
            let (code, errors) = driver.end();
            return refused_pair(pair, code, &errors);
        }
        Err(reason) => {
            driver.kill();
            return Err(reason);
        }
    }
    let start = Instant::now();
    while driver.try_wait().is_none() {
        if start.elapsed() > DEADLINE {
            driver.kill();
            return Err("does not end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let (code, errors) = driver.end();
    (code == 0).then_some(()).ok_or_else(|| format!("ended with {code}, {errors}"))
}

/// Passes messages over IPC and UDP. Returns whether the driver was there.
fn exchange(dir: &Path, driver: &mut DriverProcess) -> Result<bool, String> {
    let words = |error: Error| error.to_string();
    let start = Instant::now();
    while !dir.join("cnc.dat").exists() {
        if driver.try_wait().is_some() {
            return Ok(false);
        }
        if start.elapsed() > DEADLINE {
            return Err("makes no cnc.dat".to_owned());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut context = context(dir);
    // The shortest liveness timeouts are shorter than a client's usual intervals.
    context.set_keepalive_interval(Duration::ZERO).map_err(words)?;
    let aeron = Aeron::connect(context).map_err(words)?;
    let udp = format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=64k", free_port());
    for channel in ["aeron:ipc?term-length=64k", &udp] {
        let mut subscription = aeron.add_subscription(channel, 1).map_err(words)?;
        let publication = aeron.add_publication(channel, 1).map_err(words)?;
        aeron.next_session_id(1).map_err(words)?;
        pass(&publication, &mut subscription)
            .ok_or_else(|| format!("nothing arrives over {channel}"))?;
    }
    Ok(true)
}

/// Passes one message of several fragments.
fn pass(publication: &Publication, subscription: &mut Subscription) -> Option<()> {
    let start = Instant::now();
    let (mut is_sent, mut received) = (false, 0);
    let message = vec![7; publication.max_message_length().min(3000)];
    while received < message.len() && start.elapsed() < DEADLINE {
        is_sent = is_sent || publication.offer(&message).is_ok();
        subscription.poll(|text, _| received += text.len(), 10).ok()?;
    }
    (received == message.len()).then_some(())
}

//! Pairs of settings that are valid one by one. Each driver refuses its pair and names a setting of
//! it, or passes messages and ends.
//!
//! `RUSTERON_SETTING_PAIRS=all` tries all pairs, otherwise a few by chance.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Error, Publication, Subscription};
use rusteron_media_driver::Setting;
use rusteron_test_support::{DEADLINE, DriverProcess, Random, context, free_port, media_driver};

use crate::MEDIA_DRIVER;

/// Extreme values: of integers and sizes, of durations, and of flags. No size is larger than a
/// small machine's memory.
const VALUES: [&str; 24] = [
    "-2147483648",
    "-1",
    "0",
    "1",
    "2",
    "32",
    "64",
    "256",
    "1k",
    "4k",
    "64k",
    "1m",
    "16m",
    "64m",
    "2147483647",
    "1ns",
    "1us",
    "1ms",
    "200ms",
    "1h",
    "365d",
    "false",
    "true",
    "infer",
];

/// A setting, and the first and the last of the values that it permits.
type Extremes = (&'static Setting, [&'static str; 2]);

fn extremes() -> Vec<Extremes> {
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
    let settings = Setting::all().iter().filter(|setting| setting.is_read());
    settings
        .filter(|setting| !is_left_out(setting.variable()))
        // Names and texts have no extremes.
        .filter(|setting| setting.check("any text").is_err())
        .filter_map(|setting| {
            let mut permitted = VALUES.into_iter().filter(|value| setting.check(value).is_ok());
            let first = permitted.next()?;
            Some((setting, [first, permitted.next_back().unwrap_or(first)]))
        })
        .collect()
}

/// A pair of settings, and their values.
type Pair = [(&'static Setting, &'static str); 2];

fn pairs() -> Vec<Pair> {
    let extremes = extremes();
    assert!(extremes.len() > 40, "{}", extremes.len());
    let mut pairs = Vec::new();
    for (index, (one, values)) in extremes.iter().enumerate() {
        for (other, other_values) in &extremes[index + 1..] {
            for value in values {
                pairs.extend(
                    other_values.map(|other_value| [(*one, *value), (*other, other_value)]),
                );
            }
        }
    }
    pairs
}

#[test]
fn pairs_are_refused_or_work() {
    let mut pairs = pairs();
    if std::env::var("RUSTERON_SETTING_PAIRS").as_deref() != Ok("all") {
        let mut random = Random::new(7);
        pairs = (0..12).map(|_| pairs.swap_remove(random.below(pairs.len()))).collect();
    }
    let (next, faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Most of the time, a driver and its client wait for each other.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(text) = fault(pair) {
                        faults.fetch_add(1, Ordering::Relaxed);
                        eprintln!("{text}");
                    }
                }
            });
        }
    });
    assert_eq!(faults.into_inner(), 0, "of {} pairs", pairs.len());
}

fn fault(pair: &Pair) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("driver");
    let title = pair.map(|(setting, value)| format!("{}={value}", setting.variable())).join(" ");
    let mut command = media_driver(MEDIA_DRIVER);
    command.args(["--threading-mode", "shared", "--dir"]).arg(&dir);
    command.envs(pair.map(|(setting, value)| (setting.variable(), value)));
    let mut driver = DriverProcess::run(&mut command);
    match exchange(&dir, &mut driver) {
        Ok(true) => driver.signal("TERM"),
        Ok(false) => {
            let (code, errors) = driver.end();
            let is_named = pair.iter().any(|(setting, _)| errors.contains(setting.variable()));
            return (code == 78 && is_named)
                .then_some(())
                .ok_or_else(|| format!("{title}: {code}, {errors}"));
        }
        Err(reason) => {
            driver.kill();
            return Err(format!("{title}: {reason}"));
        }
    }
    let start = Instant::now();
    while driver.try_wait().is_none() {
        if start.elapsed() > DEADLINE {
            driver.kill();
            return Err(format!("{title}: does not end"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let (code, errors) = driver.end();
    (code == 0).then_some(()).ok_or_else(|| format!("{title}: ended with {code}, {errors}"))
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

//! The same requests to this server and to Java's archive.
//!
//! Both are on one media driver, so that they record the same streams. Their answers, signals,
//! counters and files must be equal, and what they replay. A step that makes one of them print
//! something makes the other one, too. `RUSTERON_ARCHIVE_SEEDS=FIRST..END` runs other scripts than
//! those of CI.

mod files;
mod protocol;
mod request;
mod script;
mod side;

use std::time::{Duration, Instant};

use rusteron_client::Aeron;
use rusteron_test_support::archive::{ArchiveProcess, Options};
use rusteron_test_support::cluster::has_compiled_aeron;
use rusteron_test_support::{DEADLINE, await_that, has_java};

use crate::support::Fixture;
use script::{Script, Step};
use side::Side;

const STEPS: usize = 100;
/// Control streams, and ids, of this server and of Java's.
const STREAMS: [i32; 2] = [11, 10];
const IDS: [i64; 2] = [78, 77];
/// What nobody waits for has happened by then, or never will.
const UNCONNECTED: Duration = Duration::from_secs(5);

/// Waits until both archives have done what follows from the last step.
fn settle(sides: &mut [Side; 2], script: &Script, aeron: &Aeron) {
    let start = Instant::now();
    loop {
        let was_settled = is_settled(sides, script, start);
        // What the driver knows by then reaches the archives, and what they ask of it then is answered.
        for _ in 0..3 {
            // The driver answers in the order of commands.
            drop(aeron.add_counter(1234, &[], "a round trip").expect("a counter"));
            for _ in 0..3 {
                // Java's client reads what the driver says once in a millisecond.
                std::thread::sleep(Duration::from_millis(2));
                sides.iter_mut().for_each(Side::begin_barrier);
                await_barrier(sides);
            }
        }
        let [ours, java] = &mut *sides;
        let is_equal = ours.progress() == java.progress() && ours.sort_lines() == java.sort_lines();
        let is_settled = was_settled && is_equal && is_settled(sides, script, start);
        if is_settled || start.elapsed() > DEADLINE / 4 {
            return;
        }
    }
}

/// Tells whether publishers have all subscribers that they should have, and whether all that they offered is recorded.
fn is_settled(sides: &mut [Side; 2], script: &Script, start: Instant) -> bool {
    sides[0].begin_streams();
    sides[1].begin_barrier();
    await_barrier(sides);
    let mut recordings = sides.iter().flat_map(|side| side.progress().0);
    recordings.all(|it| script.position(it.session_id) == Some(it.position))
        && (script.is_connected(&sides[0].ids) || start.elapsed() > UNCONNECTED)
}

fn await_barrier(sides: &mut [Side; 2]) {
    // Both: what they replay must be read meanwhile.
    await_that("the answers", || {
        let [ours, java] = &mut *sides;
        ours.has_passed_barrier() & java.has_passed_barrier()
    });
}

/// Runs a script. Returns the first difference.
fn run(seed: u64) -> Result<(), String> {
    let is_verbose = std::env::var_os("RUSTERON_ARCHIVE_SEEDS").is_some();
    let fixture = Fixture::prepare(|_| {});
    let options = |it: usize| Options {
        properties: vec![
            format!("aeron.archive.local.control.stream.id={}", STREAMS[it]),
            format!("aeron.archive.id={}", IDS[it]),
            format!("aeron.archive.connect.timeout={}s", (10 * DEADLINE).as_secs()),
            "aeron.archive.max.concurrent.recordings=4".to_owned(),
            "aeron.archive.max.concurrent.replays=3".to_owned(),
        ],
        aeron_dir: Some(fixture.driver.aeron_dir().into()),
        ..Options::default()
    };
    let java = ArchiveProcess::launch_compiled(options(1)).expect("Java is there");
    let mut archives = [ArchiveProcess::launch_rust(options(0)), java];
    // Java's has taken the request that a launch waits for, as both would on one driver.
    await_that("our archive", || archives[0].log().contains("archive ready"));
    let lines_printed = |archives: &[ArchiveProcess; 2]| {
        archives.each_ref().map(|archive| archive.log().lines().count())
    };
    let mut printed = lines_printed(&archives);

    let aeron = fixture.aeron();
    let limit = aeron.add_counter(1235, &[], "a limit").expect("a counter");
    limit.set_release(256);
    let dirs = archives.each_ref().map(|archive| archive.archive_dir().to_owned());
    let mut sides =
        [0, 1].map(|it| Side::connect(fixture.aeron(), STREAMS[it], IDS[it], &dirs[it]));
    let mut script = Script::new(fixture.aeron(), seed, limit.counter_id());
    let mut steps = Vec::new();
    for number in 0..STEPS {
        script.recordings = files::recordings(&dirs[0]);
        let (what, step) = script.next(&mut sides);
        if is_verbose {
            eprintln!("{number} {what}");
        }
        if let Step::Request(requests) = step {
            for (side, request) in sides.iter_mut().zip(requests) {
                side.send(&request);
            }
        }
        settle(&mut sides, &script, &aeron);
        steps.push(format!("{number} {what}"));
        let progress = sides.each_ref().map(|side| side.progress());
        let [ours, java] = sides.each_mut().map(Side::take_lines);
        let before = std::mem::replace(&mut printed, lines_printed(&archives));
        let has_printed = [0, 1].map(|it| printed[it] > before[it]);
        if ours != java || progress[0] != progress[1] || has_printed[0] != has_printed[1] {
            let logs = archives.each_ref().map(ArchiveProcess::log);
            return Err(format!(
                "seed {seed}: {steps:#?}\nours: {ours:#?}\nJava: {java:#?}\n{progress:#?}\n{logs:#?}"
            ));
        }
        if is_verbose {
            ours.iter().for_each(|line| eprintln!("    {line}"));
        }
    }
    drop((sides, script));
    let ends = archives.each_mut().map(|archive| archive.stop().code());
    assert_eq!(ends, [Some(0), Some(143)]);
    files::compare(&dirs[0], &dirs[1])
        .map_err(|difference| format!("seed {seed}: {steps:#?}\n{difference}"))
}

#[test]
fn random_requests_have_equal_outcomes() {
    if !has_java() || !has_compiled_aeron() {
        return;
    }
    let seeds = std::env::var("RUSTERON_ARCHIVE_SEEDS").unwrap_or_else(|_| "1..2".to_owned());
    let (first, end) = seeds.split_once("..").expect("FIRST..END");
    let [first, end] = [first, end].map(|it| it.parse::<u64>().expect("a number"));
    let mut differences = Vec::new();
    for seed in first..end {
        let outcome = run(seed);
        eprintln!("seed {seed}: {}", if outcome.is_ok() { "equal" } else { "different" });
        differences.extend(outcome.err());
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

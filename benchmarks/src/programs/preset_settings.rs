//! The program `benchmark_preset_settings`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use rusteron_client::{Aeron, IdleStrategyKind};
use rusteron_media_driver::{Context, MediaDriver, ThreadingMode};
use rusteron_sys as sys;
use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::RunOptions;
use crate::measuring::statistics::Statistics;
use crate::processes::process_usage::Usage;
use crate::reports::host;
use crate::reports::results::Results;

/// How long a client may be silent, in the runs that look how late a driver notices.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(2);

/// The type of a client's counter with the time of its last sign of life; its key is the client's id.
const HEARTBEAT: i32 = sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32;

/// Measures the effect of each setting of the media driver's presets by itself. The drivers are embedded, back
/// off, and have Aeron's defaults in everything else.
///
/// The settings take turns, each time on a driver of its own.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns).
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_preset_settings", version)]
pub struct PresetSettingsOptions {
    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,
}

/// One setting, its measure, and the measured values.
struct Case {
    measure: Measure,
    setting: &'static str,
    set: fn(&mut Context) -> rusteron_client::Result<&mut Context>,
    samples: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    IdleCpu,
    Add,
    Space,
    Notice,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::IdleCpu => "processor time without clients, % of one core",
            Self::Add => "adding an IPC publication, ms",
            Self::Space => "space that it takes, MiB",
            Self::Notice => "noticing that a client is gone, ms after its timeout",
        }
    }
}

impl Case {
    const fn new(
        measure: Measure,
        setting: &'static str,
        set: fn(&mut Context) -> rusteron_client::Result<&mut Context>,
    ) -> Self {
        Self { measure, setting, set, samples: Vec::new() }
    }

    fn to_json(&self) -> Value {
        json!({
            "measure": self.measure.name(),
            "setting": self.setting,
            "statistics": Statistics::new(self.samples.iter().copied()).map(|s| s.to_json()),
            "samples": self.samples,
        })
    }

    fn row(&self) -> String {
        let statistics = Statistics::new(self.samples.iter().copied());
        let text = statistics.map_or_else(
            || "-".to_owned(),
            |s| {
                format!(
                    "{:.2} ({:.2} to {:.2})",
                    s.median(),
                    s.lower_quartile(),
                    s.upper_quartile()
                )
            },
        );
        format!("{:<54}{:<44}{text:>28}", self.measure.name(), self.setting)
    }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new(Measure::IdleCpu, "dedicated, all backoff (Aeron's default)", |context| {
            context.set_threading_mode(ThreadingMode::Dedicated)
        }),
        Case::new(Measure::IdleCpu, "dedicated, conductor yields", |context| {
            context
                .set_threading_mode(ThreadingMode::Dedicated)?
                .set_conductor_idle_strategy(IdleStrategyKind::Yielding)
        }),
        Case::new(Measure::IdleCpu, "dedicated, sender no-op", |context| {
            context
                .set_threading_mode(ThreadingMode::Dedicated)?
                .set_sender_idle_strategy(IdleStrategyKind::NoOp)
        }),
        Case::new(Measure::IdleCpu, "dedicated, receiver no-op", |context| {
            context
                .set_threading_mode(ThreadingMode::Dedicated)?
                .set_receiver_idle_strategy(IdleStrategyKind::NoOp)
        }),
        Case::new(Measure::IdleCpu, "shared, backoff", shared),
        Case::new(Measure::IdleCpu, "shared, backoff, timer interval 100 ms", |context| {
            shared(context)?.set_timer_interval(Duration::from_millis(100))
        }),
    ];
    for measure in [Measure::Add, Measure::Space] {
        cases.extend([
            Case::new(measure, "terms of 64 MiB, sparse (Aeron's default)", shared),
            Case::new(measure, "terms of 64 MiB, not sparse", |context| {
                shared(context)?.set_term_buffer_sparse_file(false)
            }),
            Case::new(measure, "terms of 1 MiB, sparse", |context| {
                shared(context)?.set_ipc_term_buffer_length(1 << 20)
            }),
            Case::new(measure, "terms of 1 MiB, not sparse", |context| {
                shared(context)?
                    .set_ipc_term_buffer_length(1 << 20)?
                    .set_term_buffer_sparse_file(false)
            }),
        ]);
    }
    cases.extend([
        Case::new(Measure::Notice, "timer interval 1 s (Aeron's default)", shared),
        Case::new(Measure::Notice, "timer interval 100 ms", |context| {
            shared(context)?.set_timer_interval(Duration::from_millis(100))
        }),
    ]);
    cases
}

fn shared(context: &mut Context) -> rusteron_client::Result<&mut Context> {
    context
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(IdleStrategyKind::Backoff)
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &PresetSettingsOptions) -> Result<(), Failure> {
    options.run.check()?;
    let results = Results::open(&options.run.results, "preset-settings")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let mut cases = cases();
    'runs: for run in 1..=options.run.runs {
        for case in &mut cases {
            let sample = sample(case, &options.run, &interrupt)?;
            // A run that was cut short would not be comparable with the others.
            if interrupt.is_requested() {
                break 'runs;
            }
            case.samples.push(sample);
            output.line(format_args!(
                "Run {run}, {}, {}: {sample:.2}",
                case.measure.name(),
                case.setting
            ))?;
        }
    }
    output.line("median (quartiles)")?;
    for case in &cases {
        output.line(case.row())?;
    }
    output.line(results.write(&report(&options.run, &cases))?)
}

fn sample(case: &Case, options: &RunOptions, interrupt: &Interrupt) -> Result<f64, Failure> {
    let failure = |error| Failure::run(case.setting, error);
    let mut context = Context::new().map_err(failure)?;
    (case.set)(&mut context).map_err(failure)?;
    if case.measure == Measure::Notice {
        context.set_client_liveness_timeout(LIVENESS_TIMEOUT).map_err(failure)?;
    }
    let driver = MediaDriver::launch_embedded_with(context).map_err(failure)?;
    match case.measure {
        Measure::IdleCpu => {
            let from = Instant::now() + options.warmup;
            Usage::watch(process::id(), from, options.measure, interrupt)
                .map(|usage| usage.cpu_mean)
        }
        Measure::Add => time_of_add(driver.aeron_dir()).map_err(failure),
        Measure::Space => {
            let aeron = connect(driver.aeron_dir(), false).map_err(failure)?;
            let _publication =
                aeron.add_exclusive_publication("aeron:ipc", 1001).map_err(failure)?;
            space(&driver.aeron_dir().join("publications"))
        }
        Measure::Notice => time_to_notice(driver.aeron_dir(), interrupt),
    }
}

fn connect(dir: &Path, is_invoked: bool) -> rusteron_client::Result<Aeron> {
    let mut context = rusteron_client::Context::new()?;
    context.set_dir(dir)?.set_use_conductor_agent_invoker(is_invoked)?;
    Aeron::connect(context)
}

/// In milliseconds, by a client that does nothing else.
fn time_of_add(dir: &Path) -> rusteron_client::Result<f64> {
    let aeron = connect(dir, true)?;
    let start = Instant::now();
    let _publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Returns the disk space of the files in a directory, in MiB.
fn space(dir: &Path) -> Result<f64, Failure> {
    /// The unit of a file's blocks.
    const BLOCK: f64 = 512.0;
    let cannot_read = |error| Failure::run(format_args!("cannot read {}", dir.display()), error);
    let mut blocks = 0;
    for entry in fs::read_dir(dir).map_err(cannot_read)? {
        blocks += entry.and_then(|entry| entry.metadata()).map_err(cannot_read)?.blocks();
    }
    Ok(blocks as f64 * BLOCK / f64::from(1 << 20))
}

/// From the moment at which a silent client is gone for the driver until it acts on that, in milliseconds.
fn time_to_notice(dir: &Path, interrupt: &Interrupt) -> Result<f64, Failure> {
    let failure = |error| Failure::run("clients", error);
    let observer = connect(dir, false).map_err(failure)?;
    let silent = connect(dir, true).map_err(failure)?;
    // The driver gets to know a client by its first command.
    let _subscription = silent.add_subscription("aeron:ipc", 1001).map_err(failure)?;
    let deadline = Instant::now() + 30 * LIVENESS_TIMEOUT;
    let (counters, client_id) = (observer.counters_reader(), silent.client_id().to_ne_bytes());
    // In milliseconds of the time of day.
    let sign_of_life = || {
        counters
            .iter()
            .find(|counter| counter.type_id == HEARTBEAT && counter.key.starts_with(&client_id))
            .map(|counter| counter.value)
    };
    // So that the silence begins at any time between two looks of the driver's.
    let some_time = Duration::from_nanos(u64::from(time_of_day().subsec_nanos()));
    let silence = Instant::now() + some_time;
    while sign_of_life().is_none() || Instant::now() < silence {
        silent.do_work().map_err(failure)?;
        pause(deadline, interrupt)?;
    }
    let mut last = 0;
    while let Some(sign) = sign_of_life() {
        last = sign;
        pause(deadline, interrupt)?;
        if interrupt.is_requested() {
            break;
        }
    }
    Ok((time_of_day() - LIVENESS_TIMEOUT).as_secs_f64() * 1e3 - last as f64)
}

fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn pause(deadline: Instant, interrupt: &Interrupt) -> Result<(), Failure> {
    if Instant::now() >= deadline {
        return Err(Failure::Run("the driver has not noticed that a client is gone".to_owned()));
    }
    interrupt.wait_until(Instant::now() + Duration::from_millis(1), || false);
    Ok(())
}

fn report(options: &RunOptions, cases: &[Case]) -> Value {
    json!({
        "program": "benchmark_preset_settings",
        "versions": host::versions(),
        "host": host::describe(),
        "settings": options.to_json(),
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rusteron_media_driver::Preset;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        PresetSettingsOptions::command().debug_assert();
    }

    #[test]
    fn every_setting_can_be_made() {
        for case in cases() {
            let mut context = Context::new().expect("a context");
            (case.set)(&mut context).expect(case.setting);
        }
        // A preset with another setting wants another case. `Throughput` has a benchmark over UDP.
        let presets = Preset::ALL.iter().filter(|preset| **preset != Preset::Throughput);
        let variables: Vec<_> = presets.flat_map(|preset| preset.variables()).collect();
        assert_eq!(variables.len(), 5 + 2 + 6, "{variables:?}");
    }
}

//! The program `ipc_throughput`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::measuring::connection::{Connection, Stream};
use crate::measuring::measurement::{self, Measurement, Phase, Plan, Slice};
use crate::measuring::statistics::Statistics;
use crate::programs::ipc_throughput_options::IpcThroughputOptions;
use crate::reports::host;

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &IpcThroughputOptions) -> Result<(), Failure> {
    options.check()?;
    let driver_context = match options.aeron_dir {
        None => Some(options.common.driver.driver_context()?),
        Some(_) => None,
    };
    driver_context.as_ref().map_or(Ok(()), |context| options.check_with(context))?;
    let json = options.common.open_json()?;
    let interrupt = Interrupt::on_signals()?;

    let connection = match (driver_context, &options.aeron_dir) {
        (Some(context), _) => Connection::embedded(context)?,
        (None, Some(dir)) => Connection::to_driver(dir)?,
        (None, None) => return Err(Failure::Run("there is no media driver".to_owned())),
    };
    let report =
        measure(options, &connection, &interrupt).map_err(|failure| connection.explain(failure))?;
    connection.warn();
    json.map_or(Ok(()), |json| json.write(&report))
}

/// Measures, prints, and returns the report.
fn measure(
    options: &IpcThroughputOptions,
    connection: &Connection,
    interrupt: &Interrupt,
) -> Result<Value, Failure> {
    let channel = options.full_channel();
    let mut stream = connection.open(&channel, options.stream_id, interrupt)?;
    let term_length = stream.publication.constants().term_buffer_length;
    // A running driver tells only now how long its terms are.
    options.common.check_message_length(term_length)?;

    let mut output = Output::new(interrupt);
    let plan = plan(options, connection.timeout());
    let Stream { publication, subscription } = &mut stream;
    let measurement =
        measurement::measure(publication, subscription, &plan, interrupt, |phase, slice| {
            output.line(rate(phase, slice))
        })?;
    for line in summary(&measurement) {
        output.line(line)?;
    }
    let mut report = report(options, &measurement);
    report["settings"]["channel"] = json!(channel.as_str());
    report["settings"]["term_length"] = json!(term_length);
    report["settings"]["aeron_dir"] = json!(connection.aeron_dir().to_string_lossy());
    Ok(report)
}

fn plan(options: &IpcThroughputOptions, timeout: Duration) -> Plan {
    Plan {
        message_length: options.common.message_length,
        fragment_limit: options.common.fragment_limit,
        idle: options.common.idle,
        interval: Duration::from_secs(1),
        warmup: options.warmup,
        measured: options.duration.map(|duration| duration.saturating_sub(options.warmup)),
        timeout,
    }
}

/// The line for a slice. Once the measurement has begun, it is the line that Aeron's sample prints.
fn rate(phase: Phase, slice: &Slice) -> String {
    let label = match phase {
        Phase::WarmUp => "Warm-up",
        Phase::Measured => "Throughput",
    };
    let messages = Grouped::rounded(slice.messages_per_second());
    let bytes = Grouped::rounded(slice.bytes_per_second());
    format!("{label}: {messages} msgs/sec, {bytes} bytes/sec")
}

fn rates(measurement: &Measurement) -> Option<Statistics> {
    Statistics::new(measurement.slices.iter().map(Slice::messages_per_second))
}

/// The lines at the end.
fn summary(measurement: &Measurement) -> Vec<String> {
    let Measurement { slices, published, received } = measurement;
    let measured = match (Slice::sum(slices), rates(measurement)) {
        (Some(sum), Some(rates)) => format!(
            "Measured {:.3} s: mean {}, median {}, min {}, max {} msgs/sec",
            sum.elapsed.as_secs_f64(),
            Grouped::rounded(sum.messages_per_second()),
            Grouped::rounded(rates.median()),
            Grouped::rounded(rates.min()),
            Grouped::rounded(rates.max()),
        ),
        _ => "Measured nothing: it ended during the warm-up".to_owned(),
    };
    vec![
        format!(
            "Publisher: {} messages, back-pressure ratio {:.6}",
            Grouped(published.messages),
            published.back_pressure_ratio()
        ),
        format!(
            "Subscriber: {} bytes, failed-poll ratio {:.6}",
            Grouped(received.bytes),
            received.failed_poll_ratio()
        ),
        measured,
    ]
}

/// The report, without what only the driver knows.
fn report(options: &IpcThroughputOptions, measurement: &Measurement) -> Value {
    let Measurement { slices, published, received } = measurement;
    let is_embedded = options.aeron_dir.is_none();
    let sum = Slice::sum(slices);
    let mut rates = rates(measurement).map_or(json!({}), |rates| rates.to_json());
    rates["mean"] = json!(sum.map(|sum| sum.messages_per_second()));
    json!({
        "program": "ipc_throughput",
        "versions": host::versions(),
        "host": host::describe(),
        "settings": {
            "driver": if is_embedded { "embedded" } else { "running" },
            "threading_mode": is_embedded.then(|| options.common.driver.threading().name()),
            "stream_id": options.stream_id,
            "message_length": options.common.message_length,
            "fragment_limit": options.common.fragment_limit,
            "idle": options.common.idle.name(),
            "duration_seconds": options.duration.map(|duration| duration.as_secs_f64()),
            "warmup_seconds": options.warmup.as_secs_f64(),
        },
        "measured_seconds": sum.map(|sum| sum.elapsed.as_secs_f64()),
        "messages_per_second": rates,
        "bytes_per_second": { "mean": sum.map(|sum| sum.bytes_per_second()) },
        "slices": slices.iter().map(slice_to_json).collect::<Vec<_>>(),
        "publisher": {
            "messages": published.messages,
            "back_pressured": published.back_pressured,
            "admin_actions": published.admin_actions,
            "not_connected": published.not_connected,
            "back_pressure_ratio": published.back_pressure_ratio(),
        },
        "subscriber": {
            "messages": received.bytes / options.common.message_length as u64,
            "bytes": received.bytes,
            "polls": received.polls,
            "failed_polls": received.failed_polls,
            "failed_poll_ratio": received.failed_poll_ratio(),
        },
    })
}

fn slice_to_json(slice: &Slice) -> Value {
    json!({
        "seconds": slice.elapsed.as_secs_f64(),
        "messages": slice.messages,
        "bytes": slice.bytes,
        "messages_per_second": slice.messages_per_second(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measuring::publisher::Published;
    use crate::measuring::subscriber::Received;

    fn slice(messages: u64) -> Slice {
        Slice { elapsed: Duration::from_secs(1), messages, bytes: messages * 32 }
    }

    fn measurement(slices: Vec<Slice>) -> Measurement {
        Measurement {
            slices,
            published: Published {
                messages: 4_000_000,
                back_pressured: 1_000,
                ..Published::default()
            },
            received: Received { bytes: 128_000_000, polls: 800_000, failed_polls: 200_000 },
        }
    }

    #[test]
    fn a_rate_is_printed_as_by_aerons_sample() {
        let slice =
            Slice { elapsed: Duration::from_secs(1), messages: 36_859_281, bytes: 1_179_496_981 };
        assert_eq!(
            rate(Phase::Measured, &slice),
            "Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec"
        );
        assert!(rate(Phase::WarmUp, &slice).starts_with("Warm-up: 36,859,281 msgs/sec, "));
    }

    #[test]
    fn the_summary_has_ratios_and_rates() {
        let lines =
            summary(&measurement(vec![slice(1_000_000), slice(2_000_000), slice(1_500_000)]));
        assert_eq!(
            lines,
            [
                "Publisher: 4,000,000 messages, back-pressure ratio 0.000250",
                "Subscriber: 128,000,000 bytes, failed-poll ratio 0.250000",
                "Measured 3.000 s: mean 1,500,000, median 1,500,000, min 1,000,000, max 2,000,000 \
                 msgs/sec",
            ]
        );
    }

    #[test]
    fn without_a_measurement_the_summary_says_so() {
        let lines = summary(&measurement(Vec::new()));
        assert_eq!(
            lines.last().map(String::as_str),
            Some("Measured nothing: it ended during the warm-up")
        );
    }
}

//! The program `benchmark_bounds`.

use std::time::Duration;

use clap::Parser;
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::{DriverOptions, idle_strategy};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::connection::Connection;
use crate::measuring::counted_stream::{self, CountedSlice, Counts};
use crate::measuring::handover::{self, Distance, Probes};
use crate::measuring::measurement::Plan;
use crate::measuring::repetition::Repetition;
use crate::measuring::statistics::Statistics;
use crate::measuring::yields::{self, Others};
use crate::reports::comparison::Contender;
use crate::reports::host;
use crate::reports::results::Results;

/// The stream of the first term length; each further one has the next.
const FIRST_STREAM_ID: i32 = 5001;
/// As in the other benchmarks.
const MESSAGE_LENGTH: usize = 32;
const FRAGMENT_LIMIT: usize = 10;
/// Shorter than in the other benchmarks: the behaviour of a stream changes within milliseconds.
const SLICE: Duration = Duration::from_millis(5);

/// Measures what bounds the rate of messages over IPC.
///
/// Each round measures three things: the time of a cache line from one thread to another and back; the time
/// of a yield, with and without other threads that want the cores; and, for each term length, a stream of
/// 32-byte messages from an exclusive publication to its subscription. The stream is counted in each 5 ms:
/// messages, empty polls, fragments for each other poll, refused offers. The refused offers tell slices apart.
/// Without any, the subscriber is close behind the publisher. With more than there are empty polls, the
/// publisher is at its position limit.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_bounds", version)]
pub struct BoundsOptions {
    /// Term lengths, separated by commas: powers of two from 64k to 1g
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "64k,1m,16m,64m", value_parser = byte_size::parse_term_length)]
    pub term_lengths: Vec<usize>,

    /// Idle strategy of publisher and subscriber when they cannot go on
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Which end of a stream waited for the other one in a slice: how often offers were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusals {
    /// The subscriber was close behind the publisher.
    None,
    /// It was so most of the time.
    Few,
    /// The publisher was at its position limit.
    Many,
}

impl Refusals {
    const ALL: [Self; 3] = [Self::None, Self::Few, Self::Many];

    fn of(slice: &CountedSlice) -> Self {
        match slice.counts {
            Counts { refused: 0, .. } => Self::None,
            Counts { refused, empty_polls, .. } if refused <= empty_polls => Self::Few,
            _ => Self::Many,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Few => "up to empty polls",
            Self::Many => "more than those",
        }
    }
}

/// The results of a stream with terms of one length.
#[derive(Debug)]
struct Terms {
    length: usize,
    /// The slices of each run.
    runs: Vec<Vec<CountedSlice>>,
    /// The probes around each run.
    probes: Vec<Probes>,
}

impl Terms {
    /// How far a publication over IPC may get ahead: Aeron's default.
    fn window(&self) -> usize {
        self.length / 2
    }

    /// A row for each group that has slices.
    fn rows(&self) -> Vec<Row> {
        let groups = Refusals::ALL.map(|refusals| {
            let slices = || self.slices().filter(move |slice| Refusals::of(slice) == refusals);
            Row::new(refusals.name(), slices, self)
        });
        let all = Row::new("all slices", || self.slices(), self);
        groups.into_iter().chain([all]).flatten().collect()
    }

    /// A row for the runs on near and on far cores.
    fn rows_by_distance(&self, boundary: Option<f64>) -> Vec<Row> {
        let row = |(distance, name)| {
            let runs = || self.runs.iter().zip(&self.probes);
            let is_at = |probes: &Probes| probes.distance(boundary?).filter(|it| *it == distance);
            Row::new(name, || runs().filter(|it| is_at(it.1).is_some()).flat_map(|it| it.0), self)
        };
        Distance::ALL.into_iter().filter_map(row).collect()
    }

    fn slices(&self) -> impl Iterator<Item = &CountedSlice> {
        self.runs.iter().flatten()
    }

    fn to_json(&self, boundary: Option<f64>) -> Value {
        let runs = self.runs.iter();
        json!({
            "term_length": self.length,
            "window": self.window(),
            "groups": self.rows().iter().map(Row::to_json).collect::<Vec<_>>(),
            "distances":
                self.rows_by_distance(boundary).iter().map(Row::to_json).collect::<Vec<_>>(),
            "handover_nanoseconds": self.probes.iter().map(Probes::to_json).collect::<Vec<_>>(),
            "runs": runs.map(|run| run.iter().map(CountedSlice::to_json).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        })
    }
}

/// Some slices of a stream, together.
#[derive(Debug)]
struct Row {
    refusals: &'static str,
    /// Of the slices of this stream.
    share: f64,
    messages_per_second: Statistics,
    empty_polls_per_millisecond: f64,
    fragments_per_full_poll: f64,
    refused_per_millisecond: f64,
    /// How much of the window the subscriber had not read when offers were refused.
    unread_of_window: Option<f64>,
}

impl Row {
    /// `None` if there are no slices.
    fn new<'a, I: Iterator<Item = &'a CountedSlice>>(
        refusals: &'static str,
        slices: impl Fn() -> I,
        terms: &Terms,
    ) -> Option<Self> {
        let rates = slices().map(|slice| slice.slice.messages_per_second());
        let messages_per_second = Statistics::new(rates)?;
        let counts = slices().map(|slice| slice.counts).fold(Counts::default(), Counts::plus);
        let milliseconds: f64 = slices().map(|slice| slice.slice.elapsed.as_secs_f64() * 1e3).sum();
        let messages: u64 = slices().map(|slice| slice.slice.messages).sum();
        let unread = counts.unread_at_refusals as f64 / terms.window() as f64;
        Some(Self {
            refusals,
            share: messages_per_second.count() as f64 / terms.slices().count() as f64,
            messages_per_second,
            empty_polls_per_millisecond: counts.empty_polls as f64 / milliseconds,
            // A message is a fragment.
            fragments_per_full_poll: number::ratio(messages, counts.full_polls),
            refused_per_millisecond: counts.refused as f64 / milliseconds,
            unread_of_window: (counts.refused > 0).then(|| unread / counts.refused as f64),
        })
    }

    fn line(&self, terms: &str) -> String {
        let unread = self
            .unread_of_window
            .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        table_line(&[
            terms,
            self.refusals,
            &format!("{:.1} %", self.share * 100.0),
            &median(&self.messages_per_second, 1e6),
            &format!("{:.1}", self.empty_polls_per_millisecond),
            &format!("{:.1}", self.fragments_per_full_poll),
            &format!("{:.1}", self.refused_per_millisecond),
            &unread,
        ])
    }

    fn to_json(&self) -> Value {
        json!({
            "refused_offers": self.refusals,
            "share_of_slices": self.share,
            "messages_per_second": self.messages_per_second.to_json(),
            "empty_polls_per_millisecond": self.empty_polls_per_millisecond,
            "fragments_per_full_poll": self.fragments_per_full_poll,
            "refused_offers_per_millisecond": self.refused_per_millisecond,
            "unread_share_of_window_at_refusals": self.unread_of_window,
        })
    }
}

fn table_line(cells: &[&str; 8]) -> String {
    let [terms, refusals, share, rate, empty, fragments, refused, unread] = cells;
    format!(
        "{terms:<6} {refusals:<17} {share:>8} {rate:>24} {empty:>14} {fragments:>15} \
         {refused:>11} {unread:>17}"
    )
}

fn median(statistics: &Statistics, unit: f64) -> String {
    format!(
        "{:.1} ({:.1} to {:.1})",
        statistics.median() / unit,
        statistics.lower_quartile() / unit,
        statistics.upper_quartile() / unit
    )
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &BoundsOptions) -> Result<(), Failure> {
    options.run.check()?;
    let results = Results::open(&options.run.results, "bounds")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut handovers = Contender::new("line handed over, and back");
    let mut yields: Vec<(Others, Contender)> = Others::ALL
        .map(|others| (others, Contender::new(format!("yield, {}", others.name()))))
        .into();
    let term_lengths = run_options::distinct(&options.term_lengths);
    let mut streams: Vec<Terms> = term_lengths
        .into_iter()
        .map(|length| Terms { length, runs: Vec::new(), probes: Vec::new() })
        .collect();
    for run in 1..=options.run.runs {
        time_single_steps(run, &mut handovers, &mut yields, options, &interrupt, &mut output)?;
        count_streams(run, &mut streams, options, &interrupt, &mut output)?;
        if interrupt.is_requested() {
            break;
        }
    }

    let steps: Vec<Contender> =
        [handovers].into_iter().chain(yields.into_iter().map(|(_, contender)| contender)).collect();
    for line in steps_table(&steps).into_iter().chain(streams_table(&streams)) {
        output.line(line)?;
    }
    output.line(results.write(&report(options, &steps, &streams))?)
}

/// One round of the steps that need no driver. There is no driver, so that its threads do not want the cores.
fn time_single_steps(
    run: u32,
    handovers: &mut Contender,
    yields: &mut [(Others, Contender)],
    options: &BoundsOptions,
    interrupt: &Interrupt,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let times =
        Repetition { slice: SLICE, warmup: options.run.warmup, measured: options.run.measure };
    let mut push = |contender: &mut Contender, slices: Vec<f64>| {
        // A run that was cut short would not be comparable with the others.
        if interrupt.is_requested() {
            return Ok(());
        }
        if let Some(statistics) = Statistics::new(slices.iter().copied()) {
            output.line(format_args!(
                "Run {run}, {}: {} ns",
                contender.name,
                median(&statistics, 1.0)
            ))?;
        }
        contender.runs.push(slices);
        Ok::<_, Failure>(())
    };
    push(handovers, handover::round_trips(&times, interrupt)?)?;
    for (others, contender) in yields {
        push(contender, yields::yields(*others, &times, interrupt)?)?;
    }
    Ok(())
}

/// One round of the streams, on a driver of their own.
fn count_streams(
    run: u32,
    streams: &mut [Terms],
    options: &BoundsOptions,
    interrupt: &Interrupt,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    if interrupt.is_requested() {
        return Ok(());
    }
    let driver = DriverOptions { term_length: None, threading_mode: None };
    let connection = Connection::embedded(driver.driver_context()?)?;
    for (terms, stream_id) in streams.iter_mut().zip(FIRST_STREAM_ID..) {
        let counted = Probes::around(interrupt, || {
            count_stream(terms.length, stream_id, options, &connection, interrupt)
                .map_err(|failure| connection.explain(failure))
        })?;
        let Some((slices, probes)) = counted else { break };
        let rates = slices.iter().map(|slice| slice.slice.messages_per_second());
        if let Some(statistics) = Statistics::new(rates) {
            output.line(format_args!(
                "Run {run}, terms of {}: {} million msgs/sec",
                byte_size::display(terms.length),
                median(&statistics, 1e6)
            ))?;
        }
        terms.runs.push(slices);
        terms.probes.push(probes);
    }
    connection.warn();
    Ok(())
}

fn count_stream(
    term_length: usize,
    stream_id: i32,
    options: &BoundsOptions,
    connection: &Connection,
    interrupt: &Interrupt,
) -> Result<Vec<CountedSlice>, Failure> {
    let channel = format!("aeron:ipc?term-length={term_length}").parse().map_err(Failure::Run)?;
    let stream = connection.open(&channel, stream_id, interrupt)?;
    let plan = Plan {
        message_length: MESSAGE_LENGTH,
        fragment_limit: FRAGMENT_LIMIT,
        idle: options.idle,
        interval: SLICE,
        warmup: options.run.warmup,
        measured: Some(options.run.measure),
        timeout: connection.timeout(),
    };
    counted_stream::measure(stream, connection.aeron(), &plan, interrupt)
}

fn steps_table(steps: &[Contender]) -> Vec<String> {
    let mut lines = vec![format!("{:<28} {:>6} {:>32}", "ns", "runs", "median (quartiles)")];
    for contender in steps {
        if let Some(statistics) = contender.statistics() {
            let (count, median) = (statistics.count(), median(&statistics, 1.0));
            lines.push(format!("{:<28} {count:>6} {median:>32}", contender.name));
        }
    }
    lines
}

fn boundary(streams: &[Terms]) -> Option<f64> {
    Probes::boundary_of_two_cores(streams.iter().flat_map(|terms| &terms.probes))
}

fn streams_table(streams: &[Terms]) -> Vec<String> {
    let boundary = boundary(streams);
    let mut lines = vec![table_line(&[
        "terms",
        "refused offers",
        "slices",
        "M msgs/sec (quartiles)",
        "empty polls/ms",
        "fragments/poll",
        "refused/ms",
        "unread of window",
    ])];
    for terms in streams {
        let length = byte_size::display(terms.length);
        let rows = terms.rows().into_iter().chain(terms.rows_by_distance(boundary));
        lines.extend(rows.map(|row| row.line(&length)));
    }
    lines
}

fn report(options: &BoundsOptions, steps: &[Contender], streams: &[Terms]) -> Value {
    let mut settings = options.run.to_json();
    settings["slice_seconds"] = json!(SLICE.as_secs_f64());
    settings["message_length"] = json!(MESSAGE_LENGTH);
    settings["fragment_limit"] = json!(FRAGMENT_LIMIT);
    settings["idle"] = json!(options.idle.name());
    let step = |contender: &Contender| {
        json!({
            "name": contender.name,
            "nanoseconds": contender.statistics().map(|statistics| statistics.to_json()),
            "runs": contender.runs,
        })
    };
    let boundary = boundary(streams);
    json!({
        "program": "benchmark_bounds",
        "versions": host::versions(),
        "host": host::describe(),
        "settings": settings,
        "steps": steps.iter().map(step).collect::<Vec<_>>(),
        "streams": streams.iter().map(|terms| terms.to_json(boundary)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use crate::measuring::measurement::Slice;
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        BoundsOptions::command().debug_assert();
    }

    fn slice(messages: u64, counts: Counts) -> CountedSlice {
        let slice = Slice { elapsed: Duration::from_millis(5), messages, bytes: 32 * messages };
        CountedSlice { slice, counts }
    }

    fn refused(refused: u64) -> Counts {
        let unread_at_refusals = refused * 8192;
        Counts { empty_polls: 10, full_polls: 250, refused, unread_at_refusals }
    }

    #[test]
    fn slices_are_told_apart_by_the_refused_offers() {
        let counts = [0, 10, 11].map(refused);
        let slices = counts.map(|counts| slice(1000, counts));
        assert_eq!(
            slices.each_ref().map(Refusals::of),
            [Refusals::None, Refusals::Few, Refusals::Many]
        );
        let runs = vec![slices.to_vec(), vec![slices[2]]];
        let terms = Terms { length: 64 << 10, runs, probes: Vec::new() };
        let rows = terms.rows();
        let shares: Vec<_> = rows.iter().map(|row| (row.refusals, row.share)).collect();
        let expected = [
            ("none", 0.25),
            ("up to empty polls", 0.25),
            ("more than those", 0.5),
            ("all slices", 1.0),
        ];
        assert_eq!(shares, expected);
        assert_eq!(rows[0].unread_of_window, None);
        let many = &rows[2];
        assert_eq!(many.messages_per_second.median(), 200_000.0);
        assert_eq!((many.empty_polls_per_millisecond, many.fragments_per_full_poll), (2.0, 4.0));
        assert_eq!((many.refused_per_millisecond, many.unread_of_window), (2.2, Some(0.25)));
    }

    #[test]
    fn near_and_far_cores_have_rows() {
        let runs = vec![vec![slice(1000, refused(0))], vec![slice(500, refused(0))]];
        let probes = [60.0, 300.0].map(|probe| Probes { before: probe, after: probe }).to_vec();
        let terms = Terms { length: 1 << 20, runs, probes };
        let rows = terms.rows_by_distance(boundary(std::slice::from_ref(&terms)));
        let rows: Vec<_> =
            rows.iter().map(|it| (it.refusals, it.messages_per_second.median())).collect();
        assert_eq!(rows, [("near cores", 200_000.0), ("far cores", 100_000.0)]);
    }

    #[test]
    fn a_group_without_slices_has_no_row() {
        let runs = vec![vec![slice(1000, refused(0))]];
        let terms = Terms { length: 1 << 20, runs, probes: Vec::new() };
        let lines = streams_table(&[terms]);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(lines[1].starts_with("1m") && lines[1].contains("0.2 (0.2 to 0.2)"), "{lines:#?}");
    }
}

//! The program `benchmark_cluster`.

use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::cluster::{Bench, Client, Plan};
use crate::measuring::connection::Connection;
use crate::processes::cluster_node::ClusterNode;
use crate::processes::java::Java;
use crate::programs::cluster_cases::Case;
use crate::programs::cluster_options::MemberOptions;
use crate::reports::chart::{BarChart, Heading};
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::latencies::micros;
use crate::reports::results::{self, Results};

/// Compares round trips through a cluster of one Java member with an echo service, and their rate, of clients in Rust
/// and Java.
///
/// Both clients use the member's media driver, and take turns. A message is answered when the member has recorded it,
/// and its service has processed it. With a window of 1, a client sends the next message after the answer. With a
/// larger window, the rate is that of the whole way. Before the first run, the member is warmed up. Needs Java.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "benchmark_cluster",
    version,
    mut_arg("warmup", |arg| arg.default_value("3s")),
    mut_arg("measure", |arg| arg.default_value("3s"))
)]
pub struct ClusterOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,java"
    )]
    pub contenders: Vec<Client>,

    /// Messages and member.
    #[command(flatten)]
    pub member: MemberOptions,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

impl ClusterOptions {
    fn check(&self) -> Result<(), Failure> {
        self.run.check()?;
        self.member.check()
    }

    fn plan(&self, case: &Case, client: Client) -> Plan {
        Plan {
            transport: case.transport,
            message_length: self.member.message_length,
            window: case.window,
            idle: self.member.idle,
            warmup: match client {
                Client::Rust => self.run.warmup,
                Client::Java => self.run.warmup.max(self.java.java_warmup),
            },
            measure: self.run.measure,
        }
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for everything
/// else.
pub fn run(options: &ClusterOptions) -> Result<(), Failure> {
    options.check()?;
    let results = Results::open(&options.run.results, "cluster")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let java = Java::find(&options.java.java_option, &interrupt)
        .map_err(|reason| Failure::run("the cluster needs Java", reason))?;
    let mut node = ClusterNode::start(
        &java,
        options.member.node_idle.name(),
        options.member.cores,
        &interrupt,
    )?;
    let connection = Connection::to_driver(&node.aeron_dir())?;
    let bench = Bench {
        aeron: connection.aeron(),
        aeron_dir: &node.aeron_dir(),
        ingress_endpoints: &node.ingress_endpoints(),
        java: &java,
        interrupt: &interrupt,
    };
    let measured = compare(options, &bench, &mut output);
    // If it has ended, its own words say more.
    node.check()?;
    let cases = measured.map_err(|failure| connection.explain(failure))?;

    let rates: Vec<comparison::Case> = cases.iter().map(Case::rates).collect();
    for line in comparison::table(&rates, "msgs/sec") {
        output.line(line)?;
    }
    for line in cases.iter().flat_map(Case::table) {
        output.line(line)?;
    }
    chart(options, &rates, &java).write(&results.chart("rates"))?;
    output.line(results.write(&report(options, &cases, &java))?)
}

/// Runs all contenders of all cases in turn, again and again, and prints each run.
fn compare(
    options: &ClusterOptions,
    bench: &Bench<'_>,
    output: &mut Output<'_>,
) -> Result<Vec<Case>, Failure> {
    let clients = run_options::distinct(&options.contenders);
    let mut cases = Case::all(&options.member.transports, &options.member.windows, &clients);
    // The Java machine of the member gets ready as well, before the first run.
    for case in &cases {
        let plan = Plan { measure: options.java.java_warmup, ..options.plan(case, Client::Java) };
        bench.measure(Client::Rust, &plan)?;
    }
    for number in 1..=options.run.runs {
        for case in &mut cases {
            for index in comparison::in_turn(0..clients.len(), number) {
                let client = clients[index];
                let outcome = bench.measure(client, &options.plan(case, client))?;
                if bench.interrupt.is_requested() {
                    // A run that was cut short would not be comparable with the others.
                    return Ok(cases);
                }
                let [p50, p99] = [0.5, 0.99]
                    .map(|quantile| micros(outcome.round_trips.value_at_quantile(quantile)));
                output.line(format_args!(
                    "Run {number}, {}, {client}: {} msgs/sec, p50 {p50:.1} us, p99 {p99:.1} us",
                    case.name(),
                    Grouped::rounded(outcome.rate),
                ))?;
                case.contenders[index].runs.push(outcome);
            }
        }
    }
    Ok(cases)
}

fn chart(options: &ClusterOptions, rates: &[comparison::Case], java: &Java) -> BarChart {
    let mut notes = results::notes();
    notes.push(java.versions().to_owned());
    notes.push(options.member.note(&options.run.runs));
    let group = |case: &comparison::Case| {
        (case.name.clone(), case.contenders.iter().map(|contender| contender.bar()).collect())
    };
    BarChart {
        heading: Heading { title: "Answers of a cluster of one Java member".to_owned(), notes },
        unit: "answers per second: median, quartiles".to_owned(),
        series: run_options::distinct(&options.contenders).iter().map(Client::to_string).collect(),
        groups: rates.iter().map(group).collect(),
        // A window of one message is much slower than larger ones.
        has_common_scale: false,
    }
}

fn report(options: &ClusterOptions, cases: &[Case], java: &Java) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.versions());
    let mut settings = options.run.to_json();
    let warmup: Duration = options.java.java_warmup;
    settings["java_warmup_seconds"] = json!(warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    options.member.add_to(&mut settings);
    json!({
        "program": "benchmark_cluster",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "unit": "answers per second",
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        ClusterOptions::command().debug_assert();
    }
}

//! The program `benchmark_cluster_service`.

use std::path::Path;
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
use crate::measuring::statistics::Statistics;
use crate::processes::cluster_node::{ClusterNode, Service};
use crate::processes::echo_service;
use crate::processes::java::{self, Java};
use crate::processes::process_usage;
use crate::programs::cluster_cases::Case;
use crate::programs::cluster_options::MemberOptions;
use crate::reports::chart::{BarChart, Heading};
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::latencies::micros;
use crate::reports::results::{self, Results};

/// Compares the same echo service in Rust and in Java, in processes of their own, beside Java's consensus module.
///
/// Each run starts a member anew: driver, archive and consensus module in one process, and the service in another. The
/// client is the one in Rust. It uses the member's media driver. Before it measures, the member is warmed up. Needs
/// Java, and Linux for the memory.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "benchmark_cluster_service",
    version,
    mut_arg("warmup", |arg| arg.default_value("1s")),
    mut_arg("measure", |arg| arg.default_value("3s"))
)]
pub struct ServiceOptions {
    /// The languages of the service, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,java"
    )]
    pub contenders: Vec<Service>,

    /// Messages and member.
    #[command(flatten)]
    pub member: MemberOptions,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,

    /// Runs the service in Rust: how this program starts itself
    #[arg(long, hide = true, num_args = 3, value_names = ["IDLE", "AERON_DIR", "CLUSTER_DIR"])]
    pub serve: Option<Vec<String>>,
}

impl ServiceOptions {
    fn check(&self) -> Result<(), Failure> {
        self.run.check()?;
        self.member.check()
    }

    fn plan(&self, case: &Case) -> Plan {
        Plan {
            transport: case.transport,
            message_length: self.member.message_length,
            window: case.window,
            idle: self.member.idle,
            warmup: self.run.warmup,
            measure: self.run.measure,
        }
    }
}

/// The process of a service, after each of its starts and all cases.
#[derive(Debug)]
struct Process {
    service: Service,
    /// Resident bytes.
    resident: Vec<f64>,
    /// Resident bytes of log buffers and other shared memory; they are in the above.
    shared: Vec<f64>,
    /// Allocations per message of all sessions. Java's are not counted.
    messages: u64,
    allocations: u64,
}

impl Process {
    fn new(service: Service) -> Self {
        Self { service, resident: Vec::new(), shared: Vec::new(), messages: 0, allocations: 0 }
    }

    fn allocations_per_message(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.allocations as f64 / self.messages as f64)
    }

    fn line(&self) -> String {
        let mebibytes = |values: &[f64]| {
            let median = Statistics::new(values.iter().copied()).map(|it| it.median());
            median.map_or_else(String::new, |it| format!("{:.1}", it / 1024.0 / 1024.0))
        };
        let allocations = self.allocations_per_message();
        format!(
            "  {:<12}{:>10} {:>10} {:>14} {:>24}",
            self.service.to_string(),
            mebibytes(&self.resident),
            mebibytes(&self.shared),
            allocations.map_or_else(String::new, |it| format!("{it:.6}")),
            if self.messages > 0 {
                Grouped::rounded(self.messages as f64).to_string()
            } else {
                String::new()
            },
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.service.to_string(),
            "resident_bytes": self.resident,
            "shared_bytes": self.shared,
            "allocations_per_message": self.allocations_per_message(),
            "messages": self.messages,
        })
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for everything
/// else.
pub fn run(options: &ServiceOptions) -> Result<(), Failure> {
    if let Some([idle, aeron_dir, cluster_dir]) = options.serve.as_deref() {
        let idle = idle.parse().map_err(|error| Failure::run("service", error))?;
        return echo_service::serve(Path::new(aeron_dir), Path::new(cluster_dir), idle);
    }
    options.check()?;
    let results = Results::open(&options.run.results, "cluster-service")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let java = Java::find(&options.java.java_option, &interrupt)
        .map_err(|reason| Failure::run("the cluster needs Java", reason))?;
    let services = run_options::distinct(&options.contenders);
    let mut cases = Case::all(&options.member.transports, &options.member.windows, &services);
    let mut processes: Vec<Process> = services.iter().copied().map(Process::new).collect();
    'rounds: for number in 1..=options.run.runs {
        for index in comparison::in_turn(0..services.len(), number) {
            let contender = Contender { number, index, java: &java, interrupt: &interrupt };
            let measured = contender.run(options, &mut cases, &mut processes[index], &mut output);
            if interrupt.is_requested() {
                break 'rounds;
            }
            measured?;
        }
    }

    let rates: Vec<comparison::Case> = cases.iter().map(Case::rates).collect();
    for line in comparison::table(&rates, "msgs/sec") {
        output.line(line)?;
    }
    for line in cases.iter().flat_map(Case::table) {
        output.line(line)?;
    }
    output.line("Process of the service, MiB: medians of the starts; allocations: all sessions")?;
    output.line("  contender     resident     shared  alloc./message                 messages")?;
    for process in &processes {
        output.line(process.line())?;
    }
    chart(options, &rates, &java).write(&results.chart("rates"))?;
    output.line(results.write(&report(options, &cases, &processes, &java))?)
}

/// One start of a member with a service.
struct Contender<'a> {
    number: u32,
    index: usize,
    java: &'a Java,
    interrupt: &'a Interrupt,
}

impl Contender<'_> {
    /// Starts the member, warms it up, and measures all cases.
    fn run(
        &self,
        options: &ServiceOptions,
        cases: &mut [Case],
        process: &mut Process,
        output: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let Self { number, index, java, interrupt } = *self;
        let service = process.service;
        let idle = options.member.node_idle.name();
        let mut node =
            ClusterNode::start_with(java, idle, options.member.cores, service, interrupt)?;
        let (aeron_dir, ingress_endpoints) = (node.aeron_dir(), node.ingress_endpoints());
        let connection = Connection::to_driver(&aeron_dir)?;
        let bench = Bench {
            aeron: connection.aeron(),
            aeron_dir: &aeron_dir,
            ingress_endpoints: &ingress_endpoints,
            java,
            interrupt,
        };
        let mut measure = |plan: &Plan| {
            let outcome = bench.measure(Client::Rust, plan);
            // If a process has ended, its own words say more.
            node.check()?;
            let outcome = outcome.map_err(|failure| connection.explain(failure))?;
            if let (Service::Rust, Some(service)) = (service, node.service()) {
                let Some(line) = service.line(interrupt)? else { return Err(Failure::Interrupted) };
                let mut fields = line.split(' ').skip(1);
                process.messages += java::number::<u64>(&line, fields.next())?;
                process.allocations += java::number::<u64>(&line, fields.next())?;
            }
            Ok(outcome)
        };
        for case in &*cases {
            // Both Java machines get ready.
            measure(&Plan { measure: options.java.java_warmup, ..options.plan(case) })?;
        }
        for case in cases {
            let outcome = measure(&options.plan(case))?;
            if interrupt.is_requested() {
                // A run that was cut short would not be comparable with the others.
                return Err(Failure::Interrupted);
            }
            let [p50, p99] =
                [0.5, 0.99].map(|quantile| micros(outcome.round_trips.value_at_quantile(quantile)));
            output.line(format_args!(
                "Run {number}, {}, {service}: {} msgs/sec, p50 {p50:.1} us, p99 {p99:.1} us",
                case.name(),
                Grouped::rounded(outcome.rate),
            ))?;
            case.contenders[index].runs.push(outcome);
        }
        if let Some(service) = node.service() {
            let (resident, shared) = process_usage::resident(service.pid())?;
            process.resident.push(resident as f64);
            process.shared.push(shared as f64);
        }
        Ok(())
    }
}

fn chart(options: &ServiceOptions, rates: &[comparison::Case], java: &Java) -> BarChart {
    let mut notes = results::notes();
    notes.push(java.versions().to_owned());
    notes.push(options.member.note(&options.run.runs));
    let group = |case: &comparison::Case| {
        (case.name.clone(), case.contenders.iter().map(|contender| contender.bar()).collect())
    };
    let title = "Answers of an echo service beside Java's consensus module".to_owned();
    BarChart {
        heading: Heading { title, notes },
        unit: "answers per second: median, quartiles".to_owned(),
        series: run_options::distinct(&options.contenders).iter().map(Service::to_string).collect(),
        groups: rates.iter().map(group).collect(),
        // A window of one message is much slower than larger ones.
        has_common_scale: false,
    }
}

fn report(options: &ServiceOptions, cases: &[Case], processes: &[Process], java: &Java) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.versions());
    let mut settings = options.run.to_json();
    let warmup: Duration = options.java.java_warmup;
    settings["java_warmup_seconds"] = json!(warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    options.member.add_to(&mut settings);
    json!({
        "program": "benchmark_cluster_service",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "unit": "answers per second",
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
        "processes": processes.iter().map(Process::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        ServiceOptions::command().debug_assert();
    }
}

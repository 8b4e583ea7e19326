//! The command line.

mod archive;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::counter_types;

pub(crate) use archive::{
    ArchiveCommand, ArchiveConnectionOptions, ArchiveOptions, CompactOptions, DescribeOptions,
    LastFragmentDecision, MarkOptions, OrphansOptions, RecordChecksum, RecordingsOptions,
    TailOptions, VerifyOptions,
};

/// Inspects the Aeron directory of a media driver in Rust, C or Java, alive or dead
///
/// Only `driver --terminate` changes the driver, and only `archive` is a client, or changes files.
#[derive(Debug, Parser)]
#[command(name = "rusteron", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Directory of the media driver [default: Aeron's default directory; of `cluster`, the node's]
    #[arg(long, value_name = "DIR", env = "AERON_DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,

    /// Age of the heartbeat after which the driver counts as dead
    #[arg(long, value_name = "DURATION", default_value = "10s", global = true)]
    #[arg(value_parser = humantime::parse_duration)]
    pub(crate) driver_timeout: Duration,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  done; also if the reader of the output is gone
  1  failed; no media driver has been in the directory
  2  the command line is invalid
  3  `driver` without `--check` only: there is no driver, or it is not alive

Examples:
  rusteron stat --watch
  rusteron --dir /dev/shm/aeron stat --type sub-pos --json
  rusteron clients
  rusteron driver >/dev/null || systemctl restart media-driver
  rusteron log 42 --payload ascii
  rusteron archive list
  rusteron cluster /var/lib/orders/cluster --watch";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The counters of the driver and its clients
    #[command(after_help = "\
Examples:
  rusteron stat --watch
  rusteron stat --type system --label nak --label retransmit
  rusteron stat --json | jq '.counters[] | select(.value > 0)'
  rusteron stat --watch --json --interval 10s >> counters.ndjson
  cd /var/lib/node-exporter; rusteron stat --openmetrics > aeron.new; mv aeron.new aeron.prom
  rusteron stat --listen 127.0.0.1:9942")]
    Stat(StatOptions),

    /// The errors that the driver has logged, each distinct one once
    #[command(after_help = "Examples:\n  rusteron errors --since 1h\n  rusteron errors --json")]
    Errors(ErrorsOptions),

    /// The losses on the driver's streams
    #[command(after_help = "Examples:\n  rusteron loss\n  rusteron loss --json")]
    Loss(FormatOptions),

    /// The positions and backlogs of publications and subscriptions
    #[command(after_help = "\
Examples:
  rusteron streams --watch
  rusteron streams --json | jq '.streams[] | select(.subscriber_backlog > 1000000)'")]
    Streams(StreamsOptions),

    /// The clients of the driver: heartbeats, resources, and which subscriber limits its publisher
    ///
    /// A subscription is listed while it has an image. A publication that clients share is listed with the client
    /// that added it first. The driver does not know the clients' process ids.
    #[command(after_help = "\
Examples:
  rusteron clients --watch
  rusteron clients --json | jq '.clients[] | select(.is_slow)'")]
    Clients(WatchOptions),

    /// The state of the driver; --terminate asks the driver to end
    #[command(after_help = "\
Exit codes: 0 if the driver is alive, 3 if it is dead or missing. With --check, 0 if the driver is alive,
1 if not, as containers expect. With --terminate, 0 if the driver has ended, 1 if it has not ended in time,
3 if there was no driver to ask.

A driver ends on request only if its termination validator agrees; by default it refuses.

Examples:
  rusteron driver --json
  rusteron --driver-timeout 3s driver --check
  rusteron driver --terminate --timeout 30s")]
    Driver(DriverOptions),

    /// A log buffer file: the frames of a stream, byte by byte
    #[command(after_help = "\
The file may be in use. The program reads bytes at different times, so an entry can mix two frames.

Examples:
  rusteron log
  rusteron log 42 --frames
  rusteron log /dev/shm/aeron/publications/42.logbuffer --payload hex --limit 10 --json")]
    Log(LogOptions),

    /// The recordings of an archive
    ///
    /// A client of the archive and of its media driver, both of which have to be alive. With --archive-dir, reads the
    /// files of the directory instead, and needs neither. Commands that change files refuse to do so while an archive
    /// runs in the directory.
    #[command(after_help = "\
Exit codes: 0 done; 1 if there is no archive or no such recording, if a recording is not as it should
be, or if `verify` is interrupted.

Examples:
  rusteron archive list --channel alias=orders
  rusteron archive --control-channel aeron:udp?endpoint=10.0.0.1:8010 count
  rusteron archive verify 7 --checksum 3d4f8a21
  rusteron archive tail 7 --new --json
  rusteron archive verify --archive-dir /var/lib/aeron-archive --all-segments
  rusteron archive compact --archive-dir /var/lib/aeron-archive --dry-run")]
    Archive(ArchiveOptions),

    /// A node of a cluster: role, positions, sessions, terms, snapshots, errors
    ///
    /// Reads the files of the node's cluster directory, and the counters of its media driver. The node may be dead.
    #[command(after_help = "\
Exit codes: 0 done; 1 if there is no node in the directory, or if one of its files is damaged. The report
names all damaged files.

Examples:
  rusteron cluster /var/lib/orders/cluster --watch
  rusteron cluster --json | jq '.node.role, .snapshots[-1].log_position'
  rusteron stat --type cluster-role --type cluster-commit-pos --watch")]
    Cluster(ClusterOptions),
}

#[derive(Debug, Args)]
pub(crate) struct FormatOptions {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchOptions {
    /// Go on until Ctrl-C: on a terminal as a full screen that `q` leaves as well, otherwise one report
    /// after the other, with --json one to a line
    #[arg(long)]
    pub(crate) watch: bool,

    /// Time between two reports
    #[arg(long, value_name = "DURATION", default_value = "1s", requires = "watch")]
    #[arg(value_parser = interval)]
    pub(crate) interval: Duration,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct StatOptions {
    /// Only counters of this type: a number, `system`, a kind of position such as `sub-pos`, or a counter of
    /// Aeron Cluster such as `cluster-role`; may be given several times
    #[arg(long = "type", value_name = "TYPE", value_parser = counter_type)]
    pub(crate) types: Vec<i32>,

    /// Only counters with this in their label, in upper or lower case; may be given several times
    #[arg(long = "label", value_name = "TEXT")]
    pub(crate) labels: Vec<String>,

    /// Print metrics of counters, streams, clients, losses and errors, in Prometheus's text format
    ///
    /// Despite the option's name, the syntax is Prometheus's text format 0.0.4, which promtool reads.
    #[arg(long, conflicts_with_all = ["types", "labels", "watch", "json", "listen"])]
    pub(crate) openmetrics: bool,

    /// Serve these metrics at /metrics over HTTP until Ctrl-C, in OpenMetrics if the scraper asks for it
    ///
    /// The address is IP:PORT, NAME:PORT, IP or PORT, with 127.0.0.1 and 9942 for a missing part.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "9942")]
    #[arg(value_parser = listen_address, conflicts_with_all = ["types", "labels", "watch", "json"])]
    pub(crate) listen: Option<String>,

    /// Directory of an archive, of whose file system the metrics have the free space
    #[arg(long, value_name = "DIR", env = "AERON_ARCHIVE_DIR")]
    pub(crate) archive_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) watch: WatchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct StreamsOptions {
    /// Only streams with this in their channel
    #[arg(long, value_name = "TEXT")]
    pub(crate) channel: Option<String>,

    /// Only streams with this stream id
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) stream_id: Option<i32>,

    #[command(flatten)]
    pub(crate) watch: WatchOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ErrorsOptions {
    /// Only errors that were last observed within this time
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) since: Option<Duration>,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DriverOptions {
    /// Check the driver's health: print one line, and exit with 0 if the driver is alive, else with 1
    #[arg(long, conflicts_with_all = ["terminate", "json"])]
    pub(crate) check: bool,

    /// The process that has to be the driver's
    #[arg(long, value_name = "PID", requires = "check")]
    pub(crate) pid: Option<i64>,

    /// Ask the driver to end, and wait for the end
    #[arg(long)]
    pub(crate) terminate: bool,

    /// The text to give to the driver's termination validator
    #[arg(long, value_name = "TEXT", default_value = "", requires = "terminate")]
    pub(crate) token: String,

    /// How long to wait for the end
    #[arg(long, value_name = "DURATION", default_value = "10s", requires = "terminate")]
    #[arg(value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// The file, or the registration id of a publication or an image of the driver; without it, all log
    /// buffers of the driver are listed
    #[arg(value_name = "FILE|ID")]
    pub(crate) log: Option<PathBuf>,

    /// Show the frames
    #[arg(long, requires = "log")]
    pub(crate) frames: bool,

    /// Show the frames with their payload
    #[arg(long, value_name = "FORM", requires = "log")]
    pub(crate) payload: Option<PayloadForm>,

    /// The most bytes to show of a payload
    #[arg(long, value_name = "BYTES", default_value_t = 256, requires = "payload")]
    pub(crate) payload_limit: usize,

    /// The most frames to show
    #[arg(long, value_name = "COUNT", requires = "log")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterOptions {
    /// Directory of the node's consensus module
    #[arg(value_name = "CLUSTER_DIR", env = "AERON_CLUSTER_DIR", default_value = "aeron-cluster")]
    pub(crate) cluster_dir: PathBuf,

    #[command(flatten)]
    pub(crate) watch: WatchOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PayloadForm {
    /// Two hexadecimal digits for each byte
    Hex,
    /// Printable ASCII as it is, a dot for everything else
    Ascii,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_millis(10)..=Duration::from_secs(24 * 3600);
    if range.contains(&interval) { Ok(interval) } else { Err("not between 10ms and 1day".into()) }
}

fn counter_type(text: &str) -> Result<i32, String> {
    if let Some((_, id)) = counter_types::all().find(|(name, _)| *name == text) {
        return Ok(id);
    }
    text.parse().map_err(|_| {
        let names: Vec<_> = counter_types::all().map(|(name, _)| name).collect();
        format!("neither a number nor one of {}", names.join(", "))
    })
}

/// Completes an address to `IP:PORT` or `NAME:PORT`.
fn listen_address(text: &str) -> Result<String, String> {
    const DEFAULT_PORT: u16 = 9942;
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port).to_string());
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, DEFAULT_PORT).to_string());
    }
    if text.parse::<SocketAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    let (host, port) = text.rsplit_once(':').unwrap_or_default();
    if host.is_empty() || host.contains(':') {
        return Err("neither IP:PORT, NAME:PORT, IP nor PORT".to_owned());
    }
    port.parse::<u16>().map_err(|error| format!("port {port:?}: {error}"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rusteron_client::PositionKind;

    use super::*;

    #[test]
    fn command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn counter_types_by_number_or_name() {
        assert_eq!(counter_type("system"), Ok(0));
        assert_eq!(counter_type("sub-pos"), Ok(PositionKind::SubscriberPosition.type_id()));
        assert_eq!(counter_type("1001"), Ok(1001));
        assert_eq!(counter_type("cluster-role"), Ok(201));
        let mut ids: Vec<_> = counter_types::all().map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), counter_types::all().count());
        let error = counter_type("subpos").expect_err("no such type");
        assert!(error.contains("sub-pos"), "{error}");
    }

    #[test]
    fn listens_on_loopback_by_default() {
        let cases = [
            ("80", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:9942"),
            ("::1", "[::1]:9942"),
            ("[::1]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("no.such.name:80", "no.such.name:80"),
        ];
        for (text, address) in cases {
            assert_eq!(listen_address(text).as_deref(), Ok(address));
        }
        for text in ["70000", "", "localhost", "localhost:", "localhost:x", ":80", "1:2:80"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn interval_bounds() {
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        for text in ["0s", "1ms", "2days", "1", "x", ""] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}

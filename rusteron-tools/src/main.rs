//! The program `rusteron`: inspects the Aeron directory of any driver.
//!
//! [`options`] is the command line, and each sub-command a module: [`stat`], [`streams`], [`clients`], [`errors`],
//! [`loss`], [`driver`], [`log`], [`archive`], [`cluster`]. The sub-commands share these modules: [`driver_dir`] finds the
//! driver, [`report`] prints the findings, [`watch`] repeats that until a signal ends it, with
//! rates, [`screen`] does so in place, [`client_heartbeat`] knows the clients, [`text`] makes
//! numbers and times readable. [`shared_streams`] connects publications with their subscriptions,
//! and [`unconnected`] tells why a subscription has none. [`metrics`] reads a driver for `stat
//! --openmetrics`, [`exposition`] writes that as text, and [`metrics_server`] serves the text.
//! [`log_file`] reads a log buffer, [`recording`] the counter of an archive's recording, and
//! [`counter_types`] names counters.
//!
//! - Only `driver --terminate` affects a driver, and only `archive` is a client, or changes files if it gets an archive's
//!   directory. The other commands read files and map none, because files can shrink: a read then returns fewer bytes,
//!   and a mapping would raise SIGBUS.
//! - JSON is the serialisation of a report's structures. Names are never changed or removed;
//!   `docs/operating/inspecting.md` lists most of them.
//! - Publishers and subscribers write the channel of a stream differently. To find who limits a publisher,
//!   `clients` and the metrics use the reference id of a subscriber's position, which names the publication or
//!   the image, and session id and stream id, which connect an image with a publication of the same driver.
//!   `streams` groups by these ids, too.
//! - Aeron's counters name neither a subscription without an image nor the second client of a shared publication.
//!   Rusteron's driver adds counters of its own for both.
//! - A driver lowers the limit of an unconnected publication to its position. So a publication at its limit is
//!   back-pressured only if the log buffer's metadata says that it is connected and open.
//! - A metric never has two samples with the same labels, although any client can write such counters.
//! - The exporter reads sockets itself and parses requests with `httparse`, because `tiny_http` bounds neither
//!   the length of a request nor the time and number of connections, and `hyper` would bring a runtime.
//! - Two things end a screen without a key: SIGHUP, which a program may ignore, and a read of a terminal that
//!   is gone, for which `crossterm` needs the feature `use-dev-tty`.
//! - `archive` replays a recording in blocks, with headers and padding, to account for every byte.
//! - `cluster` reports a file that it cannot read as a problem, and describes the rest.

mod archive;
mod client_heartbeat;
mod clients;
mod cluster;
mod counter_types;
mod driver;
mod driver_dir;
mod errors;
mod exposition;
mod log;
mod log_file;
mod loss;
mod metrics;
mod metrics_server;
mod options;
mod recording;
mod report;
mod screen;
mod shared_streams;
mod stat;
mod streams;
mod text;
mod unconnected;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use rusteron_client::Context;
use rusteron_core::files::ignore_file_size_signal;
use rusteron_core::program::{Failure, exit_code, print_error};

use crate::driver_dir::DriverDir;
use crate::options::{Command, Options};

fn main() -> ExitCode {
    // Repairs of archives write files.
    ignore_file_size_signal();
    exit_code(run(Options::parse()), |text| print_error("rusteron", text))
}

fn run(options: Options) -> Result<(), Failure> {
    let given_dir = options.dir;
    let path = given_dir.clone().unwrap_or_else(Context::default_dir);
    let dir = DriverDir { path, driver_timeout: options.driver_timeout };
    match &options.command {
        Command::Stat(options) => stat::run(dir, options),
        Command::Errors(options) => errors::run(&dir, options),
        Command::Loss(options) => loss::run(&dir, options),
        Command::Streams(options) => streams::run(&dir, options),
        Command::Clients(options) => clients::run(&dir, options),
        Command::Driver(options) => driver::run(&dir, options),
        Command::Log(options) => log::run(&dir, options),
        Command::Archive(options) => archive::run(&dir, options),
        Command::Cluster(options) => cluster::run(given_dir, dir.driver_timeout, options),
    }
}

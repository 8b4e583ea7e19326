//! Measures round trips over Aeron IPC, of every caller to every server, one pair at a time. Prints a table in Markdown.

use std::error::Error;

use clap::Parser;
use cross_language::Encoding;
use cross_language_test::programs::{CALLERS, LONG, SERVERS, driver};

/// Measures round trips of every caller to every server
#[derive(Debug, Parser)]
#[command(name = "measure")]
struct Options {
    /// Timed calls of each caller, after as many for warming up
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    calls: u32,

    /// Action while waiting, of servers and callers: spin, yield, sleep-ns, backoff or noop
    #[arg(long, value_name = "IDLE", default_value = "yield")]
    idle: String,

    /// Length of the text that is sent and returned, in bytes; 0 for none
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "0,32,1024,102400")]
    payload: Vec<u32>,

    /// Encoding of arguments and results: binary or json
    #[arg(long, value_name = "ENCODING", value_delimiter = ',', default_value = "binary,json")]
    encoding: Vec<Encoding>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let (calls, idle) = (options.calls.to_string(), ["--idle", &options.idle]);
    println!(
        "Round trips over Aeron IPC in µs, idle strategy {}, {calls} calls each",
        options.idle
    );
    println!();
    println!("| Server | Caller | Encoding | Bytes | p50 | p95 | p99 | max | mean |");
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|");
    for server in SERVERS {
        let driver = driver();
        let _server = server.start(&driver, &idle);
        for caller in CALLERS {
            for encoding in &options.encoding {
                for payload in &options.payload {
                    let bytes = payload.to_string();
                    let mode =
                        ["--measure", &bytes, "--calls", &calls, "--encoding", encoding.name()];
                    let finished = caller.run(&driver, &[&mode, &idle, LONG]);
                    if !finished.status.success() {
                        return Err(format!("{caller:?}: {}", finished.stderr).into());
                    }
                    let times = finished.stdout.split_whitespace().map(str::parse::<f64>);
                    let times = times.collect::<Result<Vec<_>, _>>()?;
                    let [mean, p50, p95, p99, max] = times[..] else {
                        return Err(format!("{caller:?} prints {:?}", finished.stdout).into());
                    };
                    print!("| {server:?} | {caller:?} | {encoding} | {bytes} |");
                    for time in [p50, p95, p99, max, mean] {
                        print!(" {:.1} |", time / 1e3);
                    }
                    println!();
                }
            }
        }
    }
    Ok(())
}

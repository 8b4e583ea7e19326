//! `rusteron loss`: the losses on the driver's streams.

use std::time::SystemTime;

use rusteron_client::LossReportEntry;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverStatus};
use crate::options::FormatOptions;
use crate::report::{self, Report};
use crate::text;

#[derive(Serialize)]
struct Losses {
    driver: DriverStatus,
    losses: Vec<Listed>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Listed(#[serde(with = "Loss")] LossReportEntry);

/// The JSON of an entry.
#[derive(Serialize)]
#[serde(remote = "LossReportEntry")]
struct Loss {
    observation_count: i64,
    total_bytes_lost: i64,
    #[serde(serialize_with = "text::serialize_time")]
    first_observation: SystemTime,
    #[serde(serialize_with = "text::serialize_time")]
    last_observation: SystemTime,
    session_id: i32,
    stream_id: i32,
    channel: String,
    source: String,
}

pub(crate) fn run(dir: &DriverDir, options: &FormatOptions) -> Result<(), Failure> {
    let cnc = dir.open()?;
    let report = Losses {
        driver: dir.status(Some(&cnc)),
        losses: cnc.loss_report()?.into_iter().map(Listed).collect(),
    };
    report::print(&report, options.json)
}

impl Report for Losses {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line(), format!("{} streams with losses", self.losses.len())]
    }

    fn body(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Listed(loss) in &self.losses {
            let LossReportEntry { session_id, stream_id, observation_count, .. } = loss;
            let (channel, source) = (text::printable(&loss.channel), text::printable(&loss.source));
            lines.push(String::new());
            lines.push(format!("{channel} stream {stream_id} session {session_id} from {source}"));
            lines.push(format!(
                "  {} bytes in {observation_count} gaps, observed from {} to {}",
                text::grouped(loss.total_bytes_lost),
                text::time(loss.first_observation),
                text::time(loss.last_observation)
            ));
        }
        lines
    }
}

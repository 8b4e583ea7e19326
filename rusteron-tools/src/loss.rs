//! `rusteron loss`: the losses on the driver's streams.

use std::time::SystemTime;

use rusteron_client::LossReportEntry;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverStatus};
use crate::failure::Failure;
use crate::options::FormatOptions;
use crate::report::{self, Report};
use crate::text;

#[derive(Debug, Serialize)]
struct Losses {
    driver: DriverStatus,
    losses: Vec<Loss>,
}

#[derive(Debug, Serialize)]
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
        losses: cnc.loss_report()?.into_iter().map(Loss::from).collect(),
    };
    report::print(&report, options.json)
}

impl From<LossReportEntry> for Loss {
    fn from(entry: LossReportEntry) -> Self {
        Self {
            observation_count: entry.observation_count,
            total_bytes_lost: entry.total_bytes_lost,
            first_observation: entry.first_observation,
            last_observation: entry.last_observation,
            session_id: entry.session_id,
            stream_id: entry.stream_id,
            channel: entry.channel,
            source: entry.source,
        }
    }
}

impl Report for Losses {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line(), format!("{} streams with losses", self.losses.len())]
    }

    fn body(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for loss in &self.losses {
            let Loss { session_id, stream_id, observation_count, .. } = loss;
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

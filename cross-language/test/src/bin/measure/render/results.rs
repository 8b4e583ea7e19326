//! All rounds of all runs.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use clap::ValueEnum;
use cross_language_test::provenance;
use cross_language_test::statistics::spread;
use rusteron_benchmarks::reports::chart::Bar;
use serde_json::Value;

use crate::plan::{Transport, Work};
use crate::run::read;

/// The kind of a run, which all its rounds share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) transport: Transport,
    pub(super) caller: String,
    pub(super) server: String,
    pub(super) encoding: String,
    pub(super) work: Work,
}

/// All rounds of all runs.
pub(super) struct Results {
    pub(super) runs: BTreeMap<Key, Vec<Value>>,
    /// Of the run with the most rounds.
    pub(super) rounds: usize,
}

impl Results {
    pub(super) fn read(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let rows = read(dir)?;
        provenance::check(&rows)?;
        let mut results = Self { runs: BTreeMap::new(), rounds: 0 };
        for row in rows {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let number = |name: &str| row[name].as_u64().and_then(|number| number.try_into().ok());
            let work = match number("payload").zip(number("callers")) {
                Some((payload, callers)) => Work::Calls { payload, callers },
                None => Work::Connect,
            };
            let key = Key {
                transport: Transport::from_str(&text("transport"), false)?,
                caller: text("caller"),
                server: text("server"),
                encoding: text("encoding"),
                work,
            };
            let rows = results.runs.entry(key).or_default();
            rows.push(row);
            results.rounds = results.rounds.max(rows.len());
        }
        Ok(results)
    }

    /// Least, median and greatest value of the rounds.
    pub(super) fn spread(&self, key: &Key, field: &str) -> Option<(f64, f64, f64)> {
        let rows = self.runs.get(key)?;
        spread(rows.iter().filter_map(|row| row[field].as_f64()).collect())
    }

    pub(super) fn median(&self, key: &Key, field: &str) -> Option<f64> {
        Some(self.spread(key, field)?.1)
    }

    /// The median over the rounds of p50, in microseconds.
    pub(super) fn p50(&self, key: &Key) -> Option<f64> {
        Some(self.median(key, "p50_ns")? / 1e3)
    }

    pub(super) fn bar(&self, key: &Key, field: &str, scale: f64) -> Option<Bar> {
        let (least, median, greatest) = self.spread(key, field)?;
        Some(Bar {
            lowest: least / scale,
            median: median / scale,
            highest: greatest / scale,
        })
    }
}

/// The key of one of a pair's runs, in the transport's main encoding.
pub(super) fn key(transport: Transport, (caller, server): (&str, &str), work: Work) -> Key {
    Key {
        transport,
        caller: caller.to_owned(),
        server: server.to_owned(),
        encoding: transport.encoding().to_owned(),
        work,
    }
}

pub(super) fn calls(payload: u32, callers: u32) -> Work {
    Work::Calls { payload, callers }
}

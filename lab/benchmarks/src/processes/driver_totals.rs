//! Counts of a driver process, from its start until now.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

use rusteron_client::{CncFile, SystemCounter};
use rusteron_core::program::Failure;

use crate::processes::driver_process::DriverProcess;
use crate::processes::process_usage;

/// The counts of one driver, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriverTotals {
    /// Processor time of all threads, in steps of 10 ms.
    pub cpu: Duration,
    /// Requests for retransmission that the receiver has sent.
    pub naks: u64,
    /// Retransmissions that the sender has made.
    pub retransmits: u64,
    /// Bytes of gaps that the receiver has seen.
    pub gap_bytes: u64,
    /// Datagrams that the kernel has dropped because a receive buffer was full, in the whole network
    /// namespace of the driver.
    pub overruns: u64,
}

impl DriverTotals {
    /// Reads the counts of the drivers, each in a network of its own.
    ///
    /// # Errors
    /// [`Failure::Run`] if a driver is gone, or this is not Linux.
    pub fn read<'a>(
        drivers: impl IntoIterator<Item = (&'a DriverProcess, &'a CncFile)>,
    ) -> Result<Self, Failure> {
        let mut sum = Self::default();
        for (driver, cnc) in drivers {
            let counters = cnc.counters();
            let count = |counter: SystemCounter| {
                counter.read(&counters).and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
            };
            let gaps = cnc.loss_report()?;
            let gap_bytes = gaps.iter().filter_map(|gap| u64::try_from(gap.total_bytes_lost).ok());
            sum.cpu += process_usage::cpu_time(driver.pid())?;
            sum.naks += count(SystemCounter::NakMessagesSent);
            sum.retransmits += count(SystemCounter::RetransmitsSent);
            sum.gap_bytes += gap_bytes.sum::<u64>();
            sum.overruns += overruns(driver.pid())?;
        }
        Ok(sum)
    }
}

impl Sub for DriverTotals {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            naks: self.naks.saturating_sub(before.naks),
            retransmits: self.retransmits.saturating_sub(before.retransmits),
            gap_bytes: self.gap_bytes.saturating_sub(before.gap_bytes),
            overruns: self.overruns.saturating_sub(before.overruns),
        }
    }
}

fn overruns(pid: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/net/snmp");
    let text = fs::read_to_string(&path)
        .map_err(|error| Failure::run(format_args!("cannot read {path}"), error))?;
    parse_overruns(&text).ok_or_else(|| Failure::Run(format!("not understood: {path}")))
}

/// The line of the names has the same order as the line of the values.
fn parse_overruns(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut fields = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    fields.find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_are_found_by_name() {
        let snmp = "Tcp: RtoAlgorithm RcvbufErrors\nTcp: 1 2\n\
                    Udp: InDatagrams NoPorts RcvbufErrors\nUdp: 7 8 9\n\
                    UdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 0\n";
        assert_eq!(parse_overruns(snmp), Some(9));
        for snmp in ["", "Udp: RcvbufErrors\n", "Udp: InErrors\nUdp: 1\n"] {
            assert_eq!(parse_overruns(snmp), None, "{snmp}");
        }
    }
}

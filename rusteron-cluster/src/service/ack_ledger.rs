//! The acknowledgements that a container owes the consensus module.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use rusteron_client::OfferError;
use rusteron_core::RecordingId;

use crate::codec;
use crate::ids::ServiceId;
use crate::service::error::TerminationCause;
use crate::service::network::Network;

/// An acknowledgement without a related id, or of a failure.
const NONE: i64 = -1;

/// Attempts of a last acknowledgement.
const TERMINATION_ATTEMPTS: usize = 5;

/// How long the consensus module may be disconnected while its commit position counter is there.
const DISCONNECTED_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    /// The service has started, on the client with this id.
    Recovered {
        client_id: i64,
    },
    StartFailed,
    /// The log of a join message is there.
    Joined,
    /// A snapshot is in this recording.
    Snapshot {
        recording_id: RecordingId,
    },
    SnapshotFailed,
    Requested,
    Terminated,
}

impl Ack {
    fn relevant_id(self) -> i64 {
        match self {
            Self::Recovered { client_id } => client_id,
            Self::Snapshot { recording_id } => recording_id.get(),
            Self::StartFailed
            | Self::Joined
            | Self::SnapshotFailed
            | Self::Requested
            | Self::Terminated => NONE,
        }
    }
}

/// Work between two attempts. An error ends the container.
pub(crate) type OnIdle<'a> = &'a mut dyn FnMut(&mut dyn Network) -> Result<(), TerminationCause>;

/// The only sender of acknowledgements. Numbers them from 0 without a gap.
///
/// The consensus module ends the node after a number or a position that it did not expect. So each
/// event of the protocol calls [`send`](Self::send) exactly once.
#[derive(Debug)]
pub(crate) struct AckLedger {
    service_id: ServiceId,
    next_id: i64,
}

impl AckLedger {
    pub(crate) fn new(service_id: ServiceId) -> Self {
        Self { service_id, next_id: 0 }
    }

    /// Sends an acknowledgement, and waits until the consensus module takes the message. The last
    /// acknowledgement, of the termination, is tried a few times only. `on_idle` runs between the
    /// attempts.
    pub(crate) fn send(
        &mut self,
        network: &mut dyn Network,
        ack: Ack,
        log_position: i64,
        timestamp: i64,
        on_idle: OnIdle<'_>,
    ) -> Result<(), TerminationCause> {
        let message = codec::ServiceAck {
            log_position,
            timestamp,
            ack_id: self.next_id,
            relevant_id: ack.relevant_id(),
            service_id: self.service_id.get(),
        };
        self.next_id += 1;
        let attempts = match ack {
            Ack::Terminated => TERMINATION_ATTEMPTS,
            _ => usize::MAX,
        };
        send_all(network, &[IoSlice::new(&message.to_bytes())], attempts, on_idle)
    }
}

/// Offers a message to the consensus module until it is accepted, up to a number of attempts.
pub(crate) fn send_all(
    network: &mut dyn Network,
    message: &[IoSlice<'_>],
    attempts: usize,
    on_idle: OnIdle<'_>,
) -> Result<(), TerminationCause> {
    let mut disconnected_since = None;
    for _ in 0..attempts {
        match network.offer(message) {
            Ok(_) => return Ok(()),
            // The consensus module is not there yet, or has gone. Its counter tells that.
            Err(OfferError::NotConnected) => {
                let since = *disconnected_since.get_or_insert_with(Instant::now);
                if since.elapsed() > DISCONNECTED_TIMEOUT {
                    return Err(unreachable(OfferError::NotConnected));
                }
            }
            Err(error) if error.is_retryable() => disconnected_since = None,
            // The client has closed; idling notices that, too.
            Err(OfferError::Closed(cause)) => return Err(TerminationCause::ClientClosed(cause)),
            Err(error) => return Err(unreachable(error)),
        }
        network.idle(0)?;
        on_idle(network)?;
    }
    Ok(())
}

fn unreachable(error: OfferError) -> TerminationCause {
    TerminationCause::Failed(format!("the consensus module does not take messages: {error}"))
}

#[cfg(test)]
mod tests {
    use rusteron_client::CloseCause;

    use super::*;
    use crate::service::tests::Script;

    #[test]
    fn ids_have_no_gap_under_back_pressure() {
        let mut network = Script::new();
        let mut ledger = AckLedger::new(ServiceId::new(3));
        network.refuse(OfferError::NotConnected, 2);
        network.refuse(OfferError::BackPressured, 5);
        network.refuse(OfferError::AdminAction, 1);
        let acks = [
            (Ack::Recovered { client_id: 70 }, 0, 70),
            (Ack::Joined, 0, -1),
            (Ack::Snapshot { recording_id: RecordingId::new(12) }, 64, 12),
            (Ack::SnapshotFailed, 128, -1),
            (Ack::Requested, 192, -1),
            (Ack::StartFailed, 192, -1),
            (Ack::Terminated, 256, -1),
        ];
        for (index, (ack, position, _)) in acks.into_iter().enumerate() {
            ledger.send(&mut network, ack, position, index as i64, &mut |_| Ok(())).expect("sent");
        }
        assert_eq!(network.idles, 8);
        let expected = acks.into_iter().enumerate().map(|(id, (_, position, relevant))| {
            let id = id as i64;
            codec::ServiceAck {
                log_position: position,
                timestamp: id,
                ack_id: id,
                relevant_id: relevant,
                service_id: 3,
            }
        });
        assert_eq!(network.acks(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn last_ack_is_tried_five_times() {
        let mut network = Script::new();
        let mut ledger = AckLedger::new(ServiceId::new(0));
        network.refuse(OfferError::BackPressured, 100);
        assert_eq!(ledger.send(&mut network, Ack::Terminated, 0, 0, &mut |_| Ok(())), Ok(()));
        assert_eq!((network.idles, network.acks().len()), (5, 0));
    }

    #[test]
    fn end_of_the_container_ends_waiting() {
        let mut network = Script::new();
        network.refuse(OfferError::BackPressured, usize::MAX);
        network.end_after(7, TerminationCause::ConsensusModuleGone);
        let sent = AckLedger::new(ServiceId::new(0)).send(
            &mut network,
            Ack::Joined,
            0,
            0,
            &mut |_| Ok(()),
        );
        assert_eq!(sent, Err(TerminationCause::ConsensusModuleGone));
        let mut network = Script::new();
        network.refuse(OfferError::Closed(CloseCause::DriverShutdown), 1);
        let sent = AckLedger::new(ServiceId::new(0)).send(
            &mut network,
            Ack::Joined,
            0,
            0,
            &mut |_| Ok(()),
        );
        assert_eq!(sent, Err(TerminationCause::ClientClosed(CloseCause::DriverShutdown)));
    }
}

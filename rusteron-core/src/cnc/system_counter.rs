//! The counters of a media driver for all its streams together.

use std::fmt;

use rusteron_sys as sys;

use crate::cnc::CountersReader;

macro_rules! system_counters {
    ($($(#[$doc:meta])+ $variant:ident = $id:ident, $label:literal;)+) => {
        /// A counter that every media driver of this version has, for all its streams together.
        ///
        /// It is printed as the counter's label. Drivers of older versions may lack the last ones.
        ///
        /// ```
        /// # use rusteron_client::{Aeron, Context};
        /// # use rusteron_media_driver::MediaDriver;
        /// use rusteron_client::SystemCounter;
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let driver = MediaDriver::launch_embedded()?;
        /// # let mut context = Context::new()?;
        /// # context.set_dir(driver.aeron_dir())?;
        /// # let aeron = Aeron::connect(context)?;
        /// assert_eq!(SystemCounter::Errors.read(&aeron.counters_reader()), Some(0));
        /// # Ok(())
        /// # }
        /// ```
        #[doc(alias = "SystemCounterDescriptor")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum SystemCounter {
            $($(#[$doc])+ $variant,)+
        }

        impl SystemCounter {
            /// All system counters, in the order of their ids.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the counter's id, which is also its key and its registration id.
            ///
            /// Corresponds to the constants `AERON_SYSTEM_COUNTER_ID_…`.
            pub fn id(self) -> i32 {
                match self { $(Self::$variant => sys::$id as i32,)+ }
            }

            /// Returns the beginning of the counter's label. A driver may add details, such as its
            /// version.
            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// Returns the names of the C constants, for the test that compares them.
            #[cfg(test)]
            const C_NAMES: &'static [&'static str] = &[$(stringify!($id)),+];
        }
    };
}

system_counters! {
    /// Bytes sent by the sender, over all channels.
    BytesSent = AERON_SYSTEM_COUNTER_ID_BYTES_SENT, "Bytes sent";
    /// Bytes received by the receiver, over all channels.
    BytesReceived = AERON_SYSTEM_COUNTER_ID_BYTES_RECEIVED, "Bytes received";
    /// The number of times that the queue of commands to the receiver was full.
    ReceiverProxyFails =
        AERON_SYSTEM_COUNTER_ID_RECEIVER_PROXY_FAILS, "Failed offers to ReceiverProxy";
    /// The number of times that the queue of commands to the sender was full.
    SenderProxyFails = AERON_SYSTEM_COUNTER_ID_SENDER_PROXY_FAILS, "Failed offers to SenderProxy";
    /// The number of times that the queue of commands to the driver's conductor was full.
    ConductorProxyFails =
        AERON_SYSTEM_COUNTER_ID_CONDUCTOR_PROXY_FAILS, "Failed offers to DriverConductorProxy";
    /// Retransmission requests (NAKs) that the receiver has sent.
    NakMessagesSent = AERON_SYSTEM_COUNTER_ID_NAK_MESSAGES_SENT, "NAKs sent";
    /// Retransmission requests (NAKs) that the sender has received.
    NakMessagesReceived = AERON_SYSTEM_COUNTER_ID_NAK_MESSAGES_RECEIVED, "NAKs received";
    /// Status messages, which carry flow control, that the receiver has sent.
    StatusMessagesSent = AERON_SYSTEM_COUNTER_ID_STATUS_MESSAGES_SENT, "Status Messages sent";
    /// Status messages, which carry flow control, that the sender has received.
    StatusMessagesReceived =
        AERON_SYSTEM_COUNTER_ID_STATUS_MESSAGES_RECEIVED, "Status Messages received";
    /// Heartbeats sent: frames without data, which show that a publication is alive.
    HeartbeatsSent = AERON_SYSTEM_COUNTER_ID_HEARTBEATS_SENT, "Heartbeats sent";
    /// Heartbeats received: frames without data, which show that a publication is alive.
    HeartbeatsReceived = AERON_SYSTEM_COUNTER_ID_HEARTBEATS_RECEIVED, "Heartbeats received";
    /// Data frames that were sent again.
    RetransmitsSent = AERON_SYSTEM_COUNTER_ID_RETRANSMITS_SENT, "Retransmits sent";
    /// Packets that arrived from positions before the receiver's window.
    FlowControlUnderRuns =
        AERON_SYSTEM_COUNTER_ID_FLOW_CONTROL_UNDER_RUNS, "Flow control under runs";
    /// Packets that arrived from positions beyond the receiver's window.
    FlowControlOverRuns = AERON_SYSTEM_COUNTER_ID_FLOW_CONTROL_OVER_RUNS, "Flow control over runs";
    /// Packets that were not valid frames.
    InvalidPackets = AERON_SYSTEM_COUNTER_ID_INVALID_PACKETS, "Invalid packets";
    /// Errors that the driver has observed. [`CncFile::errors`](crate::cnc::CncFile::errors) returns
    /// them.
    Errors = AERON_SYSTEM_COUNTER_ID_ERRORS, "Errors";
    /// Packets that the operating system has sent only in part.
    ShortSends = AERON_SYSTEM_COUNTER_ID_SHORT_SENDS, "Short sends";
    /// Failed attempts to unmap or delete a log buffer.
    FreeFails = AERON_SYSTEM_COUNTER_ID_FREE_FAILS, "Failed attempts to free log buffers";
    /// The number of times that flow control has stopped a sender that had something to send.
    SenderFlowControlLimits =
        AERON_SYSTEM_COUNTER_ID_SENDER_FLOW_CONTROL_LIMITS, "Sender flow control limits, i.e. back-pressure events";
    /// Publications that the driver had to unblock, because a publisher stopped in the middle of an
    /// offer.
    UnblockedPublications =
        AERON_SYSTEM_COUNTER_ID_UNBLOCKED_PUBLICATIONS, "Unblocked Publications";
    /// Commands that the driver had to skip, because a client stopped in the middle of writing one.
    UnblockedCommands = AERON_SYSTEM_COUNTER_ID_UNBLOCKED_COMMANDS, "Unblocked Control Commands";
    /// Signs that the time to live differs between the two directions.
    PossibleTtlAsymmetry = AERON_SYSTEM_COUNTER_ID_POSSIBLE_TTL_ASYMMETRY, "Possible TTL Asymmetry";
    /// The instruction to the controllable idle strategy. It counts nothing.
    ControllableIdleStrategy =
        AERON_SYSTEM_COUNTER_ID_CONTROLLABLE_IDLE_STRATEGY, "ControllableIdleStrategy status";
    /// Gaps of unreliable streams that were filled with padding.
    LossGapFills = AERON_SYSTEM_COUNTER_ID_LOSS_GAP_FILLS, "Loss gap fills";
    /// Clients that the driver has timed out.
    ClientTimeouts = AERON_SYSTEM_COUNTER_ID_CLIENT_TIMEOUTS, "Client liveness timeouts";
    /// The number of times that the address of a name has changed.
    ResolutionChanges = AERON_SYSTEM_COUNTER_ID_RESOLUTION_CHANGES, "Resolution changes";
    /// The longest duty cycle of the driver's conductor, in nanoseconds.
    ConductorMaxCycleTime =
        AERON_SYSTEM_COUNTER_ID_CONDUCTOR_MAX_CYCLE_TIME, "Conductor max cycle time doing its work in ns";
    /// Duty cycles of the driver's conductor that took longer than a threshold.
    ConductorCycleTimeThresholdExceeded =
        AERON_SYSTEM_COUNTER_ID_CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED, "Conductor work cycle exceeded threshold count";
    /// The longest duty cycle of the sender, in nanoseconds.
    SenderMaxCycleTime =
        AERON_SYSTEM_COUNTER_ID_SENDER_MAX_CYCLE_TIME, "Sender max cycle time doing its work in ns";
    /// Duty cycles of the sender that took longer than a threshold.
    SenderCycleTimeThresholdExceeded =
        AERON_SYSTEM_COUNTER_ID_SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED, "Sender work cycle exceeded threshold count";
    /// The longest duty cycle of the receiver, in nanoseconds.
    ReceiverMaxCycleTime =
        AERON_SYSTEM_COUNTER_ID_RECEIVER_MAX_CYCLE_TIME, "Receiver max cycle time doing its work in ns";
    /// Duty cycles of the receiver that took longer than a threshold.
    ReceiverCycleTimeThresholdExceeded =
        AERON_SYSTEM_COUNTER_ID_RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED, "Receiver work cycle exceeded threshold count";
    /// The longest resolution of a name, in nanoseconds.
    NameResolverMaxTime =
        AERON_SYSTEM_COUNTER_ID_NAME_RESOLVER_MAX_TIME, "NameResolver max time in ns";
    /// Resolutions of a name that took longer than a threshold.
    NameResolverTimeThresholdExceeded =
        AERON_SYSTEM_COUNTER_ID_NAME_RESOLVER_TIME_THRESHOLD_EXCEEDED, "NameResolver exceeded threshold count";
    /// The version of Aeron, as `major << 16 | minor << 8 | patch`. The label has the version as
    /// text.
    AeronVersion = AERON_SYSTEM_COUNTER_ID_AERON_VERSION, "Aeron software";
    /// Bytes of files that the driver has mapped.
    BytesCurrentlyMapped = AERON_SYSTEM_COUNTER_ID_BYTES_CURRENTLY_MAPPED, "Bytes currently mapped";
    /// Bytes that were sent again.
    RetransmittedBytes = AERON_SYSTEM_COUNTER_ID_RETRANSMITTED_BYTES, "Retransmitted bytes";
    /// Retransmission requests that arrived while too many others were being served.
    RetransmitOverflow =
        AERON_SYSTEM_COUNTER_ID_RETRANSMIT_OVERFLOW, "Retransmit Pool Overflow count";
    /// Error frames received. By an error frame, a receiver rejects an image.
    ErrorFramesReceived = AERON_SYSTEM_COUNTER_ID_ERROR_FRAMES_RECEIVED, "Error Frames received";
    /// Error frames sent. By an error frame, a receiver rejects an image.
    ErrorFramesSent = AERON_SYSTEM_COUNTER_ID_ERROR_FRAMES_SENT, "Error Frames sent";
    /// Publications that were revoked.
    PublicationsRevoked = AERON_SYSTEM_COUNTER_ID_PUBLICATIONS_REVOKED, "Publications Revoked";
    /// Images whose publication was revoked.
    PublicationImagesRevoked =
        AERON_SYSTEM_COUNTER_ID_PUBLICATION_IMAGES_REVOKED, "Publication Images Revoked";
    /// Images that a subscriber has rejected.
    ImagesRejected = AERON_SYSTEM_COUNTER_ID_IMAGES_REJECTED, "Images rejected";
    /// The version of the protocol between clients and driver. It counts nothing.
    ControlProtocolVersion =
        AERON_SYSTEM_COUNTER_ID_CONTROL_PROTOCOL_VERSION, "Control protocol version";
    /// Status messages that were not accepted.
    StatusMessagesRejected =
        AERON_SYSTEM_COUNTER_ID_STATUS_MESSAGES_REJECTED, "Status Messages rejected";
    /// The number of times that the queue of commands to the driver's native resource agent was
    /// full.
    NativeResourceAgentProxyFails =
        AERON_SYSTEM_COUNTER_ID_NATIVE_RESOURCE_AGENT_PROXY_FAILS, "Failed offers to NativeResourceAgentProxy";
}

impl SystemCounter {
    /// Returns the counter with an id. `None` if this version has no such counter.
    pub fn from_id(id: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|counter| counter.id() == id)
    }

    /// Returns the counter's value. `None` if the driver does not have the counter.
    pub fn read(self, counters: &CountersReader<'_>) -> Option<i64> {
        const SYSTEM_COUNTER: i32 = sys::AERON_COUNTER_SYSTEM_COUNTER_TYPE_ID as i32;
        let id = self.id();
        let key = counters.key(id)?;
        (counters.type_id(id)? == SYSTEM_COUNTER && key.starts_with(&id.to_ne_bytes()))
            .then(|| counters.value(id))?
    }
}

impl fmt::Display for SystemCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_counter_has_its_name() {
        let bindings =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../rusteron-sys/src/bindings/client.rs");
        let bindings = std::fs::read_to_string(bindings).expect("the bindings");
        let names: Vec<_> = bindings
            .lines()
            .filter_map(|line| line.strip_prefix("pub const "))
            .filter(|line| line.starts_with("AERON_SYSTEM_COUNTER_ID_"))
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names.len(), 46);
        assert_eq!(SystemCounter::C_NAMES, names);
    }

    #[test]
    fn ids_are_the_positions_in_the_list() {
        for (position, counter) in SystemCounter::ALL.iter().enumerate() {
            assert_eq!(usize::try_from(counter.id()), Ok(position));
            assert_eq!(SystemCounter::from_id(counter.id()), Some(*counter));
        }
        assert_eq!(SystemCounter::from_id(46), None);
        assert_eq!(SystemCounter::from_id(-1), None);
    }
}

//! The counters of a media driver for all its streams together.

use std::fmt;

use rusteron_sys as sys;

use crate::cnc::CountersReader;

macro_rules! system_counters {
    ($($(#[$doc:meta])+ $variant:ident = $label:literal;)+) => {
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

            /// Returns the beginning of the counter's label. A driver may add details, such as its
            /// version.
            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

system_counters! {
    /// Bytes sent by the sender, over all channels.
    BytesSent = "Bytes sent";
    /// Bytes received by the receiver, over all channels.
    BytesReceived = "Bytes received";
    /// The number of times that the queue of commands to the receiver was full.
    ReceiverProxyFails = "Failed offers to ReceiverProxy";
    /// The number of times that the queue of commands to the sender was full.
    SenderProxyFails = "Failed offers to SenderProxy";
    /// The number of times that the queue of commands to the driver's conductor was full.
    ConductorProxyFails = "Failed offers to DriverConductorProxy";
    /// Retransmission requests (NAKs) that the receiver has sent.
    NakMessagesSent = "NAKs sent";
    /// Retransmission requests (NAKs) that the sender has received.
    NakMessagesReceived = "NAKs received";
    /// Status messages, which carry flow control, that the receiver has sent.
    StatusMessagesSent = "Status Messages sent";
    /// Status messages, which carry flow control, that the sender has received.
    StatusMessagesReceived = "Status Messages received";
    /// Heartbeats sent: frames without data, which show that a publication is alive.
    HeartbeatsSent = "Heartbeats sent";
    /// Heartbeats received: frames without data, which show that a publication is alive.
    HeartbeatsReceived = "Heartbeats received";
    /// Data frames that were sent again.
    RetransmitsSent = "Retransmits sent";
    /// Packets that arrived from positions before the receiver's window.
    FlowControlUnderRuns = "Flow control under runs";
    /// Packets that arrived from positions beyond the receiver's window.
    FlowControlOverRuns = "Flow control over runs";
    /// Packets that were not valid frames.
    InvalidPackets = "Invalid packets";
    /// Errors that the driver has observed. [`CncFile::errors`](crate::cnc::CncFile::errors) returns
    /// them.
    Errors = "Errors";
    /// Packets that the operating system has sent only in part.
    ShortSends = "Short sends";
    /// Failed attempts to unmap or delete a log buffer.
    FreeFails = "Failed attempts to free log buffers";
    /// The number of times that flow control has stopped a sender that had something to send.
    SenderFlowControlLimits = "Sender flow control limits, i.e. back-pressure events";
    /// Publications that the driver had to unblock, because a publisher stopped in the middle of an
    /// offer.
    UnblockedPublications = "Unblocked Publications";
    /// Commands that the driver had to skip, because a client stopped in the middle of writing one.
    UnblockedCommands = "Unblocked Control Commands";
    /// Signs that the time to live differs between the two directions.
    PossibleTtlAsymmetry = "Possible TTL Asymmetry";
    /// The instruction to the controllable idle strategy. It counts nothing.
    ControllableIdleStrategy = "ControllableIdleStrategy status";
    /// Gaps of unreliable streams that were filled with padding.
    LossGapFills = "Loss gap fills";
    /// Clients that the driver has timed out.
    ClientTimeouts = "Client liveness timeouts";
    /// The number of times that the address of a name has changed.
    ResolutionChanges = "Resolution changes";
    /// The longest duty cycle of the driver's conductor, in nanoseconds.
    ConductorMaxCycleTime = "Conductor max cycle time doing its work in ns";
    /// Duty cycles of the driver's conductor that took longer than a threshold.
    ConductorCycleTimeThresholdExceeded = "Conductor work cycle exceeded threshold count";
    /// The longest duty cycle of the sender, in nanoseconds.
    SenderMaxCycleTime = "Sender max cycle time doing its work in ns";
    /// Duty cycles of the sender that took longer than a threshold.
    SenderCycleTimeThresholdExceeded = "Sender work cycle exceeded threshold count";
    /// The longest duty cycle of the receiver, in nanoseconds.
    ReceiverMaxCycleTime = "Receiver max cycle time doing its work in ns";
    /// Duty cycles of the receiver that took longer than a threshold.
    ReceiverCycleTimeThresholdExceeded = "Receiver work cycle exceeded threshold count";
    /// The longest resolution of a name, in nanoseconds.
    NameResolverMaxTime = "NameResolver max time in ns";
    /// Resolutions of a name that took longer than a threshold.
    NameResolverTimeThresholdExceeded = "NameResolver exceeded threshold count";
    /// The version of Aeron, as `major << 16 | minor << 8 | patch`. The label has the version as
    /// text.
    AeronVersion = "Aeron software";
    /// Bytes of files that the driver has mapped.
    BytesCurrentlyMapped = "Bytes currently mapped";
    /// Bytes that were sent again.
    RetransmittedBytes = "Retransmitted bytes";
    /// Retransmission requests that arrived while too many others were being served.
    RetransmitOverflow = "Retransmit Pool Overflow count";
    /// Error frames received. By an error frame, a receiver rejects an image.
    ErrorFramesReceived = "Error Frames received";
    /// Error frames sent. By an error frame, a receiver rejects an image.
    ErrorFramesSent = "Error Frames sent";
    /// Publications that were revoked.
    PublicationsRevoked = "Publications Revoked";
    /// Images whose publication was revoked.
    PublicationImagesRevoked = "Publication Images Revoked";
    /// Images that a subscriber has rejected.
    ImagesRejected = "Images rejected";
    /// The version of the protocol between clients and driver. It counts nothing.
    ControlProtocolVersion = "Control protocol version";
    /// Status messages that were not accepted.
    StatusMessagesRejected = "Status Messages rejected";
    /// The number of times that the queue of commands to the driver's native resource agent was
    /// full.
    NativeResourceAgentProxyFails = "Failed offers to NativeResourceAgentProxy";
}

impl SystemCounter {
    /// Returns the counter's id, which is also its key and its registration id.
    ///
    /// Corresponds to the constants `AERON_SYSTEM_COUNTER_ID_…`.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// Returns the counter with an id. `None` if this version has no such counter.
    pub fn from_id(id: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
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
    fn counters_have_names_and_ids_of_c() {
        let bindings =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../rusteron-sys/src/bindings/client.rs");
        let bindings = std::fs::read_to_string(bindings).expect("the bindings");
        let constants = bindings.lines().filter_map(|line| {
            line.strip_prefix("pub const AERON_SYSTEM_COUNTER_ID_")?.split_once(": u32 = ")
        });
        let words = |name: &str| name.replace('_', "").to_lowercase();
        let constants: Vec<_> =
            constants.map(|(name, id)| format!("{} {id}", words(name))).collect();
        let counters = SystemCounter::ALL.iter();
        let counters: Vec<_> = counters
            .map(|counter| format!("{} {};", words(&format!("{counter:?}")), counter.id()))
            .collect();
        assert_eq!(counters.len(), 46);
        assert_eq!(counters, constants);
    }

    #[test]
    fn counters_are_found_by_id() {
        for counter in SystemCounter::ALL {
            assert_eq!(SystemCounter::from_id(counter.id()), Some(*counter));
        }
        assert_eq!(SystemCounter::from_id(46), None);
        assert_eq!(SystemCounter::from_id(-1), None);
    }
}

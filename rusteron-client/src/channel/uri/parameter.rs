//! The parameters of channel URIs.

use std::fmt;
use std::str::FromStr;

use crate::channel::uri::{ChannelUriError, ChannelUriErrorKind};

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $valid:literal;)+) => {
        /// A parameter of a channel URI that Aeron knows.
        ///
        /// Each says what it means, what it takes, what the driver does without it, and who reads
        /// it: the media driver ignores a parameter that the resource does not read, and its value
        /// with it. The defaults are those of a driver that is not configured otherwise.
        ///
        /// The order is that in which a [`ChannelUri`](crate::ChannelUri) is printed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Parameter {
            $($(#[$doc])* #[doc = concat!("\n\nKey `", $key, "`; value: ", $valid, ".")] $name,)+
        }

        impl Parameter {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The key, as it is written in a URI.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)+
                }
            }

            /// What the parameter takes: its range and its unit.
            pub fn valid_values(self) -> &'static str {
                match self {
                    $(Self::$name => $valid,)+
                }
            }

            pub(super) fn from_key(key: &str) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

parameters! {
    /// Numbers by which other channels refer to this one: the channel's, the publication's, or both.
    ///
    /// A UDP channel with the channel tag of another one shares its socket. A publication with
    /// `session-id=tag:…` takes its session id from the UDP publication with that entity tag.
    /// An IPC channel ignores the channel tag, a subscription the entity tag.
    Tags = "tags", "a number, or two separated by a comma";
    /// Where a UDP publication sends to and a UDP subscription receives: an address or a host name,
    /// and a port.
    ///
    /// IPv6 addresses are written in brackets. A multicast address has to be odd: the even one after
    /// it carries the control messages. Port 0 lets the operating system choose, which is for
    /// subscriptions, and for publications with several destinations. Read by UDP channels, which
    /// need it, [`Control`](Self::Control), [`Tags`](Self::Tags) or the
    /// [`ControlMode`](Self::ControlMode) `manual` or `response`.
    Endpoint = "endpoint", "host:port, with IPv6 addresses in brackets";
    /// The network interface, by an address, by an address and the length of its prefix, which
    /// selects an interface in that network, or by its name in braces, such as `{eth0}`.
    ///
    /// Default: what the operating system chooses. Read by UDP channels.
    Interface = "interface", "host:port/prefix or {name}:port, port and prefix as needed";
    /// Where a UDP publication listens for receivers that join it, and where a UDP subscription
    /// joins one.
    ///
    /// A publication with it needs an [`Endpoint`](Self::Endpoint) or a
    /// [`ControlMode`](Self::ControlMode) as well; with a subscription, the port cannot be 0.
    Control = "control", "host:port, with IPv6 addresses in brackets";
    /// How the destinations of a UDP publication come about, or the sources of a UDP subscription.
    ///
    /// `manual`: they are added by calls; `dynamic`: receivers join at [`Control`](Self::Control),
    /// which has to be given; `response`: the channel of the answers to requests, for which a UDP
    /// publication needs a [`ResponseCorrelationId`](Self::ResponseCorrelationId). Aeron takes
    /// anything else for none at all, and so does this library.
    ControlMode = "control-mode", "manual, dynamic or response";
    /// The largest frame on the network, header included; for IPC, the longest message that is not
    /// fragmented.
    ///
    /// Default: 1408. Read by publications; it cannot exceed [`SocketSndbuf`](Self::SocketSndbuf).
    Mtu = "mtu", "a multiple of 32 from 64 to 65504 (bytes)";
    /// The length of each of the three term buffers.
    ///
    /// It limits the length of a message to an eighth of it. Default: 16 MiB, for IPC 64 MiB. Read
    /// by publications.
    TermLength = "term-length", "a power of two from 64k to 1g (bytes)";
    /// The term id of position 0.
    ///
    /// Goes with [`TermId`](Self::TermId) and [`TermOffset`](Self::TermOffset) only. Default: random.
    /// Read by publications.
    InitialTermId = "init-term-id", "an integer of 32 bits";
    /// The term id at which a publication starts.
    ///
    /// At most 2³¹ − 1 more than [`InitialTermId`](Self::InitialTermId). Default: the initial term
    /// id. Read by publications.
    TermId = "term-id", "an integer of 32 bits";
    /// The offset in the term at which a publication starts.
    ///
    /// Default: 0. Read by publications.
    TermOffset = "term-offset", "a multiple of 32 up to the term length (bytes)";
    /// The session id of a publication, or the one that a subscription is restricted to.
    ///
    /// `tag:` and a number takes that of the UDP publication with this entity tag, for publications
    /// only. Default: the driver counts; a subscription receives all sessions.
    SessionId = "session-id", "an integer of 32 bits, for publications also tag: and an integer";
    /// How many routers a multicast datagram may pass.
    ///
    /// Default: the operating system's. Read by UDP channels with a multicast endpoint; Aeron takes
    /// more for 255 and what is no number for the default.
    Ttl = "ttl", "an integer from 0 to 255";
    /// Whether a UDP subscription asks for what was lost, or goes on with a gap.
    ///
    /// Default: `true`. Read by subscriptions.
    Reliable = "reliable", "true or false";
    /// How long a publication stays after it was closed, so that receivers can catch up.
    ///
    /// Default: `5s`. Read by publications.
    Linger = "linger", "a duration: an integer with s, ms, us, ns or without for ns";
    /// A name for people and programs to know the channel by. Aeron does not read it.
    Alias = "alias", "any text";
    /// How a UDP subscription controls congestion: `static`, a fixed window, or `cubic`.
    ///
    /// Default: `static`. The driver does not read it before there is something to receive; with a
    /// value it does not know, it accepts the subscription and never gives it an image.
    CongestionControl = "cc", "static or cubic";
    /// How a publication with several receivers controls its flow: `max` follows the fastest, `min`
    /// the slowest, `tagged` the slowest of those with a [`GroupTag`](Self::GroupTag).
    ///
    /// Options follow, separated by commas: `g:tag/size`, the tag and how many receivers there have
    /// to be; `t:` and a duration, after which a silent receiver is forgotten; `rrwm:` and a number,
    /// how many receiver windows a retransmission may be long. `max` takes the last one only.
    /// Default: `max`. Read by UDP publications to multicast endpoints and with the control modes
    /// `manual` and `dynamic`.
    FlowControl = "fc", "max, min or tagged, then options g:tag/size, t:duration, rrwm:number";
    /// The tag by which flow control of a publication knows this receiver.
    ///
    /// Default: none. Read by UDP subscriptions.
    GroupTag = "gtag", "an integer of 64 bits";
    /// Whether term buffers take storage when they are written only.
    ///
    /// Default: `true`.
    Sparse = "sparse", "true or false";
    /// Whether the end of the stream is told to receivers when the publication is closed.
    ///
    /// Default: `true`. Read by publications.
    Eos = "eos", "true or false";
    /// Whether the publication waits for this subscription, or leaves it behind if it is too slow.
    ///
    /// Default: `true`. Read by subscriptions.
    Tether = "tether", "true or false";
    /// Whether a subscription behaves as one of a group, for lost messages above all, or alone.
    ///
    /// Default: `infer`, from the channel. Read by UDP subscriptions. The C driver takes what it
    /// does not know for `false`.
    Group = "group", "true, false or infer";
    /// Whether a subscription takes a stream up again after its image was lost.
    ///
    /// Default: `true`. Read by subscriptions.
    Rejoin = "rejoin", "true or false";
    /// Whether a spy makes a UDP publication appear connected.
    ///
    /// Default: `false`. Read by publications.
    SpiesSimulateConnection = "ssc", "true or false";
    /// The length of the socket's send buffer; 0 for the default.
    ///
    /// At least the [`Mtu`](Self::Mtu) for publications. Default: the operating system's. Read by
    /// UDP channels.
    SocketSndbuf = "so-sndbuf", "a size: an integer with k, m, g or without (bytes)";
    /// The length of the socket's receive buffer; 0 for the default.
    ///
    /// At least the [`ReceiverWindow`](Self::ReceiverWindow) for subscriptions. Default: `128k`.
    /// Read by UDP channels.
    SocketRcvbuf = "so-rcvbuf", "a size: an integer with k, m, g or without (bytes)";
    /// The type of service in the IP header of what the socket sends.
    ///
    /// Default: the operating system's. Read by UDP channels.
    SocketTos = "so-tos", "an integer from 0 to 255";
    /// How much a publisher may send before a subscription has said that it follows.
    ///
    /// Default: `128k`. Read by subscriptions, and checked by UDP publications.
    ReceiverWindow = "rcv-wnd", "a size: an integer with k, m, g or without (bytes)";
    /// Where in a message the network card's time of receiving is written: an offset behind the
    /// frame's header, or the reserved value. Eight bytes that the others must not touch.
    ///
    /// Default: nowhere. Read by UDP channels.
    MediaReceiveTimestampOffset = "media-rcv-ts-offset", "an integer (bytes) or reserved";
    /// Where in a message the time is written at which the driver received it, as for
    /// [`MediaReceiveTimestampOffset`](Self::MediaReceiveTimestampOffset).
    ///
    /// Default: nowhere. Read by UDP channels.
    ChannelReceiveTimestampOffset = "channel-rcv-ts-offset", "an integer (bytes) or reserved";
    /// Where in a message the time is written at which the driver sent it, as for
    /// [`MediaReceiveTimestampOffset`](Self::MediaReceiveTimestampOffset).
    ///
    /// Default: nowhere. Read by UDP channels.
    ChannelSendTimestampOffset = "channel-snd-ts-offset", "an integer (bytes) or reserved";
    /// Where the answers to requests go. The C driver does not read it; the archive does.
    ResponseEndpoint = "response-endpoint", "host:port, with IPv6 addresses in brackets";
    /// For the publication of requests, the registration id of the subscription to their answers;
    /// for the publication of answers, the correlation id of the requests' image, or `prototype` for
    /// one that only reserves the channel.
    ///
    /// Default: −1, none. Read by publications.
    ResponseCorrelationId = "response-correlation-id", "an integer of 64 bits from -1, or prototype";
    /// How long a UDP subscription waits before it asks for lost messages.
    ///
    /// Default: `1us`. Not read before something is lost; with a value that the driver cannot
    /// read, it accepts the subscription and never gives it an image.
    NakDelay = "nak-delay", "a duration: an integer with s, ms, us, ns or without for ns";
    /// After which time at the window's limit an untethered subscription is left behind.
    ///
    /// Default: `5s`.
    UntetheredWindowLimitTimeout = "untethered-window-limit-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// For which time an untethered subscription that was left behind is given to notice.
    ///
    /// Default, also of 0: that of the window limit.
    UntetheredLingerTimeout = "untethered-linger-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// For which time an untethered subscription that was left behind rests before it joins again.
    ///
    /// Default: `10s`.
    UntetheredRestingTimeout = "untethered-resting-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// How many retransmissions a UDP publication has under way at once.
    ///
    /// Default: 16. Read by publications.
    MaxResend = "max-resend", "an integer from 1 to 256";
    /// The stream id, for those who pass it along with the channel. The driver does not read it.
    StreamId = "stream-id", "an integer of 32 bits";
    /// How far a publication may be ahead of its slowest receiver.
    ///
    /// At least the [`Mtu`](Self::Mtu), and at most half of the [`TermLength`](Self::TermLength).
    /// Default: half of the term length. Read by publications.
    PublicationWindow = "pub-wnd", "a size from the MTU to half of the term length (bytes)";
    /// Whether the transport is secured. The open-source drivers do not take `true`, but for a spy.
    ///
    /// Default: the driver's. Read by UDP channels.
    Ats = "ats", "true or false";
}

/// The key.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// From a key; keys are case-sensitive.
impl FromStr for Parameter {
    type Err = ChannelUriError;

    fn from_str(key: &str) -> Result<Self, ChannelUriError> {
        Self::from_key(key).ok_or_else(|| {
            ChannelUriError::new(ChannelUriErrorKind::Syntax, "not a parameter that Aeron knows")
                .with_key(key)
        })
    }
}

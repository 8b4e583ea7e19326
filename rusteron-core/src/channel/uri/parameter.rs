//! The parameters of channel URIs.

use std::fmt;
use std::str::FromStr;

use crate::channel::uri::{ChannelUriError, ChannelUriErrorKind};

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident = $key:literal, $valid:literal;)+) => {
        /// A parameter of a channel URI that Aeron knows.
        ///
        /// Each parameter states its meaning, its values, the driver's default, and the resources
        /// that read it. If a resource does not read a parameter, the media driver ignores the
        /// parameter and its value. The defaults are those of a driver without other configuration.
        ///
        /// The order is the order in which a [`ChannelUri`](crate::channel::ChannelUri) is printed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Parameter {
            $($(#[$doc])* #[doc = concat!("\n\nKey `", $key, "`; value: ", $valid, ".")] $name,)+
        }

        impl Parameter {
            /// All parameters, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the key as it is written in a URI.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)+
                }
            }

            /// Returns the values that the parameter takes: its range and its unit.
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
    /// Tags by which other channels refer to this one: the channel's, the publication's, or both.
    ///
    /// A UDP channel with the channel tag of another channel shares its socket. A publication with
    /// `session-id=tag:…` takes its session id from the UDP publication with that entity tag.
    /// An IPC channel ignores the channel tag. A subscription ignores the entity tag.
    Tags = "tags", "a number, or two separated by a comma";
    /// The address or host name, and the port, that a UDP publication sends to and a UDP
    /// subscription receives from.
    ///
    /// IPv6 addresses are written in brackets. A multicast address has to be odd: the even address
    /// after it carries the control messages. With port 0, the operating system chooses the port.
    /// Port 0 is for subscriptions, and for publications with several destinations. Read by UDP
    /// channels. They need this parameter, [`Control`](Self::Control), [`Tags`](Self::Tags) or the
    /// [`ControlMode`](Self::ControlMode) `manual` or `response`.
    Endpoint = "endpoint", "host:port, with IPv6 addresses in brackets";
    /// The network interface, in one of three forms: an address; an address and a prefix length,
    /// which select an interface in that network; the interface's name in braces, such as `{eth0}`.
    ///
    /// Default: the operating system chooses. Read by UDP channels.
    Interface = "interface", "host:port/prefix or {name}:port, port and prefix as needed";
    /// The address at which a UDP publication listens for receivers that join it. For a UDP
    /// subscription, the address at which it joins a publication.
    ///
    /// A publication with this parameter also needs an [`Endpoint`](Self::Endpoint) or a
    /// [`ControlMode`](Self::ControlMode). With a subscription, the port cannot be 0.
    Control = "control", "host:port, with IPv6 addresses in brackets";
    /// The origin of the destinations of a UDP publication, or of the sources of a UDP
    /// subscription.
    ///
    /// - `manual`: calls add them.
    /// - `dynamic`: receivers join at [`Control`](Self::Control), which has to be given.
    /// - `response`: the channel carries the answers to requests. A UDP publication then needs a
    ///   [`ResponseCorrelationId`](Self::ResponseCorrelationId).
    ///
    /// Aeron takes any other value for no control mode. The checks of a channel refuse it.
    ControlMode = "control-mode", "manual, dynamic or response";
    /// The length of the largest frame on the network, header included. For IPC, the length of the
    /// longest message that is not fragmented.
    ///
    /// Default: 1408. Read by publications. It cannot exceed [`SocketSndbuf`](Self::SocketSndbuf).
    Mtu = "mtu", "a multiple of 32 from 64 to 65504 (bytes)";
    /// The length of each of the three term buffers.
    ///
    /// A message is at most an eighth of this length. Default: 16 MiB, for IPC 64 MiB. Read by
    /// publications.
    TermLength = "term-length", "a power of two from 64k to 1g (bytes)";
    /// The term id of position 0.
    ///
    /// It requires [`TermId`](Self::TermId) and [`TermOffset`](Self::TermOffset). Default: random.
    /// Read by publications.
    InitialTermId = "init-term-id", "an integer of 32 bits";
    /// The term id at which a publication starts.
    ///
    /// It is at most 2³¹ − 1 more than [`InitialTermId`](Self::InitialTermId). Default: the initial
    /// term id. Read by publications.
    TermId = "term-id", "an integer of 32 bits";
    /// The offset in the term at which a publication starts.
    ///
    /// Default: 0. Read by publications.
    TermOffset = "term-offset", "a multiple of 32 up to the term length (bytes)";
    /// The session id of a publication, or the only session id that a subscription receives.
    ///
    /// For publications only, `tag:` and a number selects the session id of the UDP publication
    /// with this entity tag. Default: for publications, the driver counts; a subscription receives
    /// all sessions.
    SessionId = "session-id", "an integer of 32 bits, for publications also tag: and an integer";
    /// The number of routers that a multicast datagram may pass.
    ///
    /// Default: the operating system's. Read by UDP channels with a multicast endpoint.
    Ttl = "ttl", "an integer from 0 to 255";
    /// Reliability of a UDP subscription: it asks for lost messages, or continues with a gap.
    ///
    /// Default: `true`. Read by subscriptions.
    Reliable = "reliable", "true or false";
    /// The time that a closed publication stays, so that receivers can catch up.
    ///
    /// Default: `5s`. Read by publications.
    Linger = "linger", "a duration: an integer with s, ms, us, ns or without for ns";
    /// A name by which people and programs know the channel. Aeron does not read it.
    Alias = "alias", "any text";
    /// The congestion control of a UDP subscription: `static`, a fixed window, or `cubic`.
    ///
    /// Default: `static`. For an unknown value, as an [`UncheckedChannel`](crate::channel::UncheckedChannel) can have
    /// it, the driver accepts the subscription and never gives it an image.
    CongestionControl = "cc", "static or cubic";
    /// The flow control of a publication with several receivers. `max` follows the fastest
    /// receiver, and `min` the slowest. `tagged` follows the slowest receiver with a
    /// [`GroupTag`](Self::GroupTag).
    ///
    /// Options follow, separated by commas:
    /// - `g:tag/size`: the tag, and the number of receivers that have to be present;
    /// - `t:` and a duration: the silence after which a receiver is forgotten;
    /// - `rrwm:` and a number: the maximum length of a retransmission, in receiver windows.
    ///
    /// Of these, `max` takes `rrwm:` only. Default: `max`. Read by UDP publications to multicast
    /// endpoints and with the control modes `manual` and `dynamic`.
    FlowControl = "fc", "max, min or tagged, then options g:tag/size, t:duration, rrwm:number";
    /// The tag by which a publication's flow control knows this receiver.
    ///
    /// Default: none. Read by UDP subscriptions.
    GroupTag = "gtag", "an integer of 64 bits";
    /// Sparse term buffers: they take storage only when they are written.
    ///
    /// Default: `true`.
    Sparse = "sparse", "true or false";
    /// End of stream: receivers are told when the publication is closed.
    ///
    /// Default: `true`. Read by publications.
    Eos = "eos", "true or false";
    /// Tether: the publication waits for this subscription, or leaves the subscription behind if it
    /// is too slow.
    ///
    /// Default: `true`. Read by subscriptions.
    Tether = "tether", "true or false";
    /// Group semantics: a subscription behaves as one of a group or alone, above all for lost
    /// messages.
    ///
    /// Default: `infer`, from the channel. Read by UDP subscriptions.
    Group = "group", "true, false or infer";
    /// Rejoin: a subscription takes a stream up again after the stream's image was lost.
    ///
    /// Default: `true`. Read by subscriptions.
    Rejoin = "rejoin", "true or false";
    /// Spies simulate a connection: a spy makes a UDP publication appear connected.
    ///
    /// Default: `false`. Read by publications.
    SpiesSimulateConnection = "ssc", "true or false";
    /// The length of the socket's send buffer. With 0, the default.
    ///
    /// For publications, at least the [`Mtu`](Self::Mtu). Default: the operating system's. Read by
    /// UDP channels.
    SocketSndbuf = "so-sndbuf", "a size: an integer with k, m, g or without (bytes)";
    /// The length of the socket's receive buffer. With 0, the default.
    ///
    /// For subscriptions, at least the [`ReceiverWindow`](Self::ReceiverWindow). Default: `128k`.
    /// Read by UDP channels.
    SocketRcvbuf = "so-rcvbuf", "a size: an integer with k, m, g or without (bytes)";
    /// The type of service in the IP header of the datagrams that the socket sends.
    ///
    /// Default: the operating system's. Read by UDP channels.
    SocketTos = "so-tos", "an integer from 0 to 255";
    /// The amount that a publisher may send before a subscription has reported progress.
    ///
    /// Default: `128k`. Read by subscriptions, and checked by UDP publications.
    ReceiverWindow = "rcv-wnd", "a size: an integer with k, m, g or without (bytes)";
    /// The offset in a message at which the network card's receive time is written. It is an offset
    /// behind the frame's header, or the reserved value. The time takes eight bytes. The other
    /// timestamps must not overlap it.
    ///
    /// Default: nowhere. Read by UDP channels.
    MediaReceiveTimestampOffset = "media-rcv-ts-offset", "an integer (bytes) or reserved";
    /// The offset in a message at which the driver's receive time is written. The values are as for
    /// [`MediaReceiveTimestampOffset`](Self::MediaReceiveTimestampOffset).
    ///
    /// Default: nowhere. Read by UDP channels.
    ChannelReceiveTimestampOffset = "channel-rcv-ts-offset", "an integer (bytes) or reserved";
    /// The offset in a message at which the driver's send time is written. The values are as for
    /// [`MediaReceiveTimestampOffset`](Self::MediaReceiveTimestampOffset).
    ///
    /// Default: nowhere. Read by UDP channels.
    ChannelSendTimestampOffset = "channel-snd-ts-offset", "an integer (bytes) or reserved";
    /// The endpoint for the answers to requests. The C driver does not read it. The archive does.
    ResponseEndpoint = "response-endpoint", "host:port, with IPv6 addresses in brackets";
    /// The id that connects requests and answers.
    ///
    /// - For the publication of requests: the registration id of the subscription to the answers.
    /// - For the publication of answers: the correlation id of the requests' image, or `prototype`
    ///   for a publication that only reserves the channel.
    ///
    /// Default: −1, none. Read by publications.
    ResponseCorrelationId = "response-correlation-id", "an integer of 64 bits from -1, or prototype";
    /// The delay before a UDP subscription asks for lost messages.
    ///
    /// Default: `1us`.
    NakDelay = "nak-delay", "a duration: an integer with s, ms, us, ns or without for ns";
    /// The time at the window's limit after which an untethered subscription is left behind.
    ///
    /// Default: `5s`.
    UntetheredWindowLimitTimeout = "untethered-window-limit-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// The time for which an untethered subscription is notified that it was left behind.
    ///
    /// Default, also for 0: the value of
    /// [`UntetheredWindowLimitTimeout`](Self::UntetheredWindowLimitTimeout).
    UntetheredLingerTimeout = "untethered-linger-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// The time that an untethered subscription rests after it was left behind, before it joins
    /// again.
    ///
    /// Default: `10s`.
    UntetheredRestingTimeout = "untethered-resting-timeout",
        "a duration: an integer with s, ms, us, ns or without for ns";
    /// The maximum number of retransmissions that a UDP publication has under way at once.
    ///
    /// Default: 16. Read by publications.
    MaxResend = "max-resend", "an integer from 1 to 256";
    /// The stream id, for programs that pass it along with the channel. The driver does not read
    /// it.
    StreamId = "stream-id", "an integer of 32 bits";
    /// The maximum distance between a publication and its slowest subscriber (IPC), or the driver's
    /// sender and spies (UDP).
    ///
    /// It is at least the [`Mtu`](Self::Mtu), and at most half of the
    /// [`TermLength`](Self::TermLength).
    /// Default: half of the term length. Read by publications.
    PublicationWindow = "pub-wnd", "a size from the MTU to half of the term length (bytes)";
    /// Transport security. The open-source drivers refuse `true`, except for a spy.
    ///
    /// Default: the driver's. Read by UDP channels.
    Ats = "ats", "true or false";
}

/// Writes the key.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Parses a key. Keys are case-sensitive.
impl FromStr for Parameter {
    type Err = ChannelUriError;

    fn from_str(key: &str) -> Result<Self, ChannelUriError> {
        Self::from_key(key).ok_or_else(|| {
            ChannelUriError::new(ChannelUriErrorKind::Syntax, "not a parameter that Aeron knows")
                .with_key(key)
        })
    }
}

//! The settings of the driver, by the names of their environment variables.

use std::fmt::Display;
use std::ops::RangeInclusive;

use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::__private::Limit;
use rusteron_media_driver::{Context, InferableBoolean, ThreadNaming, ThreadingMode};

use crate::format::Format::{
    self, Duration, Events, Flag, Function, Functions, IdleArguments, Number, Ports, Size, Text,
    Word,
};
use crate::format::{
    BINDINGS, CONGESTION_CONTROLS, FLOW_CONTROLS, IDLE_STRATEGIES, INTERCEPTORS, NAME_RESOLVERS,
    TERMINATION_VALIDATORS,
};

/// Source of a variable's value.
pub(crate) enum Value {
    /// The setting as the driver has it.
    Of(fn(&Context) -> String),
    /// The setting as the driver has it, unless the variable is set. If it is, the driver has the
    /// named function, but does not tell by which of its names.
    Named(fn(&Context) -> Option<&'static str>),
    /// The variable's text: C reads the variable, and does not expose the result.
    Verbatim,
    /// No value: C defines the name and never reads it.
    Unread,
}

use Value::{Named, Of, Unread, Verbatim};

const I32_MAX: u64 = i32::MAX as u64;
const I64_MAX: u64 = i64::MAX as u64;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// Every variable in the sources of the C driver, which a test compares, and this crate's own: the
/// name, the values that the driver can read, and the value that the driver has.
///
/// The name of the property is the variable's in lower case, with dots: `aeron.dir` for `AERON_DIR`.
/// Aeron takes underscores for dots: `aeron.socket.so_rcvbuf`.
pub(crate) const VARIABLES: &[(&str, Format, Value)] = &[
    // The directory and its files.
    ("AERON_DIR", Text, Of(|c| c.dir().display().to_string())),
    ("AERON_DIR_WARN_IF_EXISTS", Flag, Of(|c| plain(c.dir_warn_if_exists()))),
    ("AERON_DIR_DELETE_ON_START", Flag, Of(|c| plain(c.dir_delete_on_start()))),
    ("AERON_DIR_DELETE_ON_SHUTDOWN", Flag, Of(|c| plain(c.dir_delete_on_shutdown()))),
    ("RUSTERON_DIR_ACCESS", Word(&["private", "group", "umask"]), Of(|c| plain(c.dir_access()))),
    (
        "RUSTERON_SEGMENTATION_OFFLOAD",
        Word(&["on", "off"]),
        Of(|c| on_or_off(c.segmentation_offload())),
    ),
    (
        "RUSTERON_TERM_CLEANING",
        Word(&["adaptive", "cached", "streaming"]),
        Of(|c| plain(c.term_cleaning())),
    ),
    ("AERON_FILE_PAGE_SIZE", Size(Limit::PAGE_SIZE), Of(|c| plain(c.file_page_size()))),
    ("AERON_PERFORM_STORAGE_CHECKS", Flag, Of(|c| plain(c.perform_storage_checks()))),
    (
        "AERON_LOW_FILE_STORE_WARNING_THRESHOLD",
        Size(Limit::range(0, I64_MAX)),
        Of(|c| plain(c.low_file_store_warning_threshold())),
    ),
    (
        "AERON_CONDUCTOR_BUFFER_LENGTH",
        Size(Limit::TO_CONDUCTOR_BUFFER),
        Of(|c| plain(c.to_conductor_buffer_length())),
    ),
    (
        "AERON_CLIENTS_BUFFER_LENGTH",
        Size(Limit::TO_CLIENTS_BUFFER),
        Of(|c| plain(c.to_clients_buffer_length())),
    ),
    (
        "AERON_COUNTERS_BUFFER_LENGTH",
        Size(Limit::COUNTERS_BUFFER),
        Of(|c| plain(c.counters_buffer_length())),
    ),
    (
        "AERON_ERROR_BUFFER_LENGTH",
        Size(Limit::ERROR_BUFFER),
        Of(|c| plain(c.error_buffer_length())),
    ),
    (
        "AERON_LOSS_REPORT_BUFFER_LENGTH",
        Size(Limit::range(1 << 10, I32_MAX)),
        Of(|c| plain(c.loss_report_buffer_length())),
    ),
    // Threads.
    (
        "AERON_THREADING_MODE",
        Word(&["DEDICATED", "SHARED_NETWORK", "SHARED", "INVOKER"]),
        Of(|c| threading_mode(c.threading_mode())),
    ),
    ("AERON_THREAD_NAMING", Word(&["classic", "new"]), Of(|c| thread_naming(c.thread_naming()))),
    (
        "AERON_CONDUCTOR_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.conductor_idle_strategy())),
    ),
    (
        "AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_CONDUCTOR_IDLE_STRATEGY"),
        Of(|c| c.conductor_idle_strategy_init_args().into()),
    ),
    (
        "AERON_SENDER_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.sender_idle_strategy())),
    ),
    (
        "AERON_SENDER_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_SENDER_IDLE_STRATEGY"),
        Of(|c| c.sender_idle_strategy_init_args().into()),
    ),
    (
        "AERON_RECEIVER_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.receiver_idle_strategy())),
    ),
    (
        "AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_RECEIVER_IDLE_STRATEGY"),
        Of(|c| c.receiver_idle_strategy_init_args().into()),
    ),
    (
        "AERON_SHARED_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.shared_idle_strategy())),
    ),
    (
        "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_SHARED_IDLE_STRATEGY"),
        Of(|c| c.shared_idle_strategy_init_args().into()),
    ),
    (
        "AERON_SHAREDNETWORK_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.shared_network_idle_strategy())),
    ),
    (
        "AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_SHAREDNETWORK_IDLE_STRATEGY"),
        Of(|c| c.shared_network_idle_strategy_init_args().into()),
    ),
    (
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY",
        Function(&IDLE_STRATEGIES),
        Named(|c| idle(c.native_resource_agent_idle_strategy())),
    ),
    (
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS",
        IdleArguments("AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY"),
        Of(|c| c.native_resource_agent_idle_strategy_init_args().into()),
    ),
    ("AERON_CONDUCTOR_CPU_AFFINITY", Number(-1..=255), Of(|c| plain(c.conductor_cpu_affinity()))),
    ("AERON_SENDER_CPU_AFFINITY", Number(-1..=255), Of(|c| plain(c.sender_cpu_affinity()))),
    ("AERON_RECEIVER_CPU_AFFINITY", Number(-1..=255), Of(|c| plain(c.receiver_cpu_affinity()))),
    (
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_CPU_AFFINITY",
        Number(-1..=255),
        Of(|c| plain(c.native_resource_agent_cpu_affinity())),
    ),
    (
        "AERON_THREAD_AFFINITY_USE_CPUSET_OFFSETS",
        Flag,
        Of(|c| plain(c.thread_affinity_use_cpuset_offsets())),
    ),
    (
        "AERON_THREAD_AFFINITY_FAIL_ON_VALIDATION_ERRORS",
        Flag,
        Of(|c| plain(c.thread_affinity_fail_on_validation_errors())),
    ),
    ("AERON_AGENT_ON_START_FUNCTION", Text, Verbatim),
    (
        "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD",
        Duration(0),
        Of(|c| time(c.conductor_cycle_threshold())),
    ),
    ("AERON_DRIVER_SENDER_CYCLE_THRESHOLD", Duration(0), Of(|c| time(c.sender_cycle_threshold()))),
    (
        "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD",
        Duration(0),
        Of(|c| time(c.receiver_cycle_threshold())),
    ),
    // Timeouts and intervals; the first is in milliseconds, without a unit.
    (
        "AERON_DRIVER_TIMEOUT",
        Number(0..=i64::MAX as i128),
        Of(|c| plain(c.driver_timeout().as_millis())),
    ),
    (
        "AERON_CLIENT_LIVENESS_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.client_liveness_timeout())),
    ),
    ("AERON_TIMER_INTERVAL", Duration(MICROSECOND), Of(|c| time(c.timer_interval()))),
    (
        "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT",
        Duration(0),
        Of(|c| time(c.counters_free_to_reuse_timeout())),
    ),
    (
        "AERON_DRIVER_RESOURCE_FREE_LIMIT",
        Number(1..=i32::MAX as i128),
        Of(|c| plain(c.resource_free_limit())),
    ),
    // Publications.
    ("AERON_TERM_BUFFER_LENGTH", Size(Limit::TERM_LENGTH), Of(|c| plain(c.term_buffer_length()))),
    (
        "AERON_IPC_TERM_BUFFER_LENGTH",
        Size(Limit::TERM_LENGTH),
        Of(|c| plain(c.ipc_term_buffer_length())),
    ),
    ("AERON_TERM_BUFFER_SPARSE_FILE", Flag, Of(|c| plain(c.term_buffer_sparse_file()))),
    ("AERON_MTU_LENGTH", Size(Limit::MTU), Of(|c| plain(c.mtu_length()))),
    ("AERON_IPC_MTU_LENGTH", Size(Limit::MTU), Of(|c| plain(c.ipc_mtu_length()))),
    (
        "AERON_PUBLICATION_TERM_WINDOW_LENGTH",
        Size(Limit::TERM_WINDOW),
        Of(|c| plain(c.publication_term_window_length())),
    ),
    (
        "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH",
        Size(Limit::TERM_WINDOW),
        Of(|c| plain(c.ipc_publication_term_window_length())),
    ),
    (
        "AERON_PUBLICATION_LINGER_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.publication_linger_timeout())),
    ),
    (
        "AERON_PUBLICATION_UNBLOCK_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.publication_unblock_timeout())),
    ),
    (
        "AERON_PUBLICATION_CONNECTION_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.publication_connection_timeout())),
    ),
    (
        "AERON_PUBLICATION_RESERVED_SESSION_ID_LOW",
        Number(i32::MIN as i128..=i32::MAX as i128),
        Of(|c| plain(c.publication_reserved_session_id_low())),
    ),
    (
        "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH",
        Number(i32::MIN as i128..=i32::MAX as i128),
        Of(|c| plain(c.publication_reserved_session_id_high())),
    ),
    ("AERON_SPIES_SIMULATE_CONNECTION", Flag, Of(|c| plain(c.spies_simulate_connection()))),
    // Subscriptions and images.
    ("AERON_RELIABLE_STREAM", Flag, Of(|c| plain(c.reliable_stream()))),
    ("AERON_REJOIN_STREAM", Flag, Of(|c| plain(c.rejoin_stream()))),
    ("AERON_TETHER_SUBSCRIPTIONS", Flag, Of(|c| plain(c.tether_subscriptions()))),
    (
        "AERON_RECEIVER_GROUP_CONSIDERATION",
        Word(&["true", "false", "infer"]),
        Of(|c| inferable(c.receiver_group_consideration())),
    ),
    (
        "AERON_RECEIVER_GROUP_TAG",
        Number(i64::MIN as i128..=i64::MAX as i128),
        Of(|c| c.receiver_group_tag().map_or_else(String::new, plain)),
    ),
    (
        "AERON_IMAGE_LIVENESS_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.image_liveness_timeout())),
    ),
    (
        "AERON_RCV_INITIAL_WINDOW_LENGTH",
        Size(Limit::range(256, I32_MAX)),
        Of(|c| plain(c.rcv_initial_window_length())),
    ),
    (
        "AERON_RCV_STATUS_MESSAGE_TIMEOUT",
        Duration(MICROSECOND),
        Of(|c| time(c.rcv_status_message_timeout())),
    ),
    (
        "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT",
        Duration(0),
        Of(|c| time(c.untethered_window_limit_timeout())),
    ),
    (
        "AERON_UNTETHERED_LINGER_TIMEOUT",
        Duration(0),
        Of(|c| c.untethered_linger_timeout().map_or_else(String::new, time)),
    ),
    ("AERON_UNTETHERED_RESTING_TIMEOUT", Duration(0), Of(|c| time(c.untethered_resting_timeout()))),
    (
        "AERON_DRIVER_STREAM_SESSION_LIMIT",
        Number(1..=i32::MAX as i128),
        Of(|c| plain(c.stream_session_limit())),
    ),
    // Flow and congestion control.
    (
        "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
        Function(&FLOW_CONTROLS),
        Named(|c| c.unicast_flow_control().map(|strategy| strategy.name())),
    ),
    (
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
        Function(&FLOW_CONTROLS),
        Named(|c| c.multicast_flow_control().map(|strategy| strategy.name())),
    ),
    (
        "AERON_FLOW_CONTROL_GROUP_TAG",
        Number(i64::MIN as i128..=i64::MAX as i128),
        Of(|c| plain(c.flow_control_group_tag())),
    ),
    (
        "AERON_FLOW_CONTROL_GROUP_MIN_SIZE",
        Number(0..=i32::MAX as i128),
        Of(|c| plain(c.flow_control_group_min_size())),
    ),
    (
        "AERON_FLOW_CONTROL_RECEIVER_TIMEOUT",
        Duration(0),
        Of(|c| time(c.flow_control_receiver_timeout())),
    ),
    (
        "AERON_CONGESTIONCONTROL_SUPPLIER",
        Function(&CONGESTION_CONTROLS),
        Named(|c| c.congestion_control().map(|strategy| strategy.name())),
    ),
    ("AERON_CUBICCONGESTIONCONTROL_MEASURERTT", Flag, Verbatim),
    ("AERON_CUBICCONGESTIONCONTROL_INITIALRTT", Duration(0), Verbatim),
    ("AERON_CUBICCONGESTIONCONTROL_TCPMODE", Flag, Verbatim),
    // Loss and retransmission.
    (
        "AERON_NAK_MULTICAST_GROUP_SIZE",
        Number(1..=i32::MAX as i128),
        Of(|c| plain(c.nak_multicast_group_size())),
    ),
    (
        "AERON_NAK_MULTICAST_MAX_BACKOFF",
        Duration(MICROSECOND),
        Of(|c| time(c.nak_multicast_max_backoff())),
    ),
    ("AERON_NAK_UNICAST_DELAY", Duration(MICROSECOND), Of(|c| time(c.nak_unicast_delay()))),
    (
        "AERON_NAK_UNICAST_RETRY_DELAY_RATIO",
        Number(1..=i64::MAX as i128),
        Of(|c| plain(c.nak_unicast_retry_delay_ratio())),
    ),
    ("AERON_MAX_RESEND", Number(1..=256), Of(|c| plain(c.max_resend()))),
    ("AERON_RETRANSMIT_UNICAST_DELAY", Duration(0), Of(|c| time(c.retransmit_unicast_delay()))),
    (
        "AERON_RETRANSMIT_UNICAST_LINGER",
        Duration(MICROSECOND),
        Of(|c| time(c.retransmit_unicast_linger())),
    ),
    // Sockets.
    ("AERON_SOCKET_SO_RCVBUF", Size(Limit::range(0, I32_MAX)), Of(|c| plain(c.socket_so_rcvbuf()))),
    ("AERON_SOCKET_SO_SNDBUF", Size(Limit::range(0, I32_MAX)), Of(|c| plain(c.socket_so_sndbuf()))),
    ("AERON_SOCKET_MULTICAST_TTL", Number(0..=255), Of(|c| plain(c.socket_multicast_ttl()))),
    ("AERON_SOCKET_TOS", Number(-1..=255), Of(|c| plain(c.socket_tos()))),
    ("AERON_DRIVER_CONNECT", Flag, Of(|c| plain(c.connect_enabled()))),
    (
        "AERON_SEND_TO_STATUS_POLL_RATIO",
        Number(1..=i32::MAX as i128),
        Of(|c| plain(c.send_to_status_poll_ratio())),
    ),
    (
        "AERON_RECEIVER_POLL_TO_SLOW_WORK_RATIO",
        Number(1..=i32::MAX as i128),
        Of(|c| plain(c.receiver_poll_to_slow_work_ratio())),
    ),
    (
        "AERON_SENDER_IO_VECTOR_CAPACITY",
        Number(1..=64),
        Of(|c| plain(c.sender_io_vector_capacity())),
    ),
    (
        "AERON_RECEIVER_IO_VECTOR_CAPACITY",
        Number(1..=64),
        Of(|c| plain(c.receiver_io_vector_capacity())),
    ),
    (
        "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND",
        Number(1..=64),
        Of(|c| plain(c.network_publication_max_messages_per_send())),
    ),
    ("AERON_SENDER_WILDCARD_PORT_RANGE", Ports, Of(|c| ports(c.sender_wildcard_port_range()))),
    ("AERON_RECEIVER_WILDCARD_PORT_RANGE", Ports, Of(|c| ports(c.receiver_wildcard_port_range()))),
    (
        "AERON_UDP_CHANNEL_TRANSPORT_POLLER_ITERATION_THRESHOLD",
        Number(0..=usize::MAX as i128),
        Of(|c| plain(c.udp_channel_transport_poller_iteration_threshold())),
    ),
    (
        "AERON_UDP_CHANNEL_TRANSPORT_POLLER_SOCKET_POLL_LIMIT",
        Number(1..=16),
        Of(|c| plain(c.udp_channel_transport_poller_socket_poll_limit())),
    ),
    ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", Function(&BINDINGS), Verbatim),
    ("AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", Function(&BINDINGS), Verbatim),
    ("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", Functions(&INTERCEPTORS), Verbatim),
    ("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", Functions(&INTERCEPTORS), Verbatim),
    ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS", Text, Verbatim),
    ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS", Text, Verbatim),
    ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS", Text, Verbatim),
    ("AERON_DEBUG_SEND_DATA_LOSS_RATE", Text, Unread),
    ("AERON_DEBUG_SEND_DATA_LOSS_SEED", Text, Unread),
    ("AERON_DEBUG_SEND_CONTROL_LOSS_RATE", Text, Unread),
    ("AERON_DEBUG_SEND_CONTROL_LOSS_SEED", Text, Unread),
    ("AERON_DEBUG_RECEIVE_DATA_LOSS_RATE", Text, Unread),
    ("AERON_DEBUG_RECEIVE_DATA_LOSS_SEED", Text, Unread),
    ("AERON_DEBUG_RECEIVE_CONTROL_LOSS_RATE", Text, Unread),
    ("AERON_DEBUG_RECEIVE_CONTROL_LOSS_SEED", Text, Unread),
    // Names.
    (
        "AERON_NAME_RESOLVER_SUPPLIER",
        Function(&NAME_RESOLVERS),
        Named(|c| c.name_resolver().map(|resolver| resolver.name())),
    ),
    ("AERON_NAME_RESOLVER_INIT_ARGS", Text, Of(|c| c.name_resolver_init_args().into())),
    ("AERON_NAME_RESOLVER_CSV_LOOKUP_TABLE_ARGS", Text, Unread),
    ("AERON_DRIVER_RESOLVER_NAME", Text, Of(|c| c.resolver_name().into())),
    ("AERON_DRIVER_RESOLVER_INTERFACE", Text, Of(|c| c.resolver_interface().into())),
    (
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR",
        Text,
        Of(|c| c.resolver_bootstrap_neighbor().into()),
    ),
    (
        "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT",
        Duration(MILLISECOND),
        Of(|c| time(c.resolver_neighbor_timeout())),
    ),
    (
        "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL",
        Duration(MILLISECOND),
        Of(|c| time(c.self_resolution_interval())),
    ),
    (
        "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL",
        Duration(MILLISECOND),
        Of(|c| time(c.resolver_neighbor_resolution_interval())),
    ),
    (
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL",
        Duration(MILLISECOND),
        Of(|c| time(c.resolver_bootstrap_neighbor_resolution_interval())),
    ),
    (
        "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL",
        Duration(0),
        Of(|c| time(c.re_resolution_check_interval())),
    ),
    (
        "AERON_DRIVER_NAME_RESOLVER_THRESHOLD",
        Duration(0),
        Of(|c| time(c.name_resolver_threshold())),
    ),
    // The driver as a program.
    ("AERON_DRIVER_TERMINATION_VALIDATOR", Function(&TERMINATION_VALIDATORS), Verbatim),
    ("AERON_PRINT_CONFIGURATION", Flag, Of(|c| plain(c.print_configuration()))),
    ("AERON_DRIVER_DYNAMIC_LIBRARIES", Text, Verbatim),
    ("AERON_ENABLE_EXPERIMENTAL_FEATURES", Flag, Of(|c| plain(c.enable_experimental_features()))),
    ("AERON_EVENT_LOG", Events, Verbatim),
    ("AERON_EVENT_LOG_DISABLE", Events, Verbatim),
    ("AERON_EVENT_LOG_FILENAME", Text, Verbatim),
    ("AERON_EVENT_LOG_FILE_MAX_LENGTH", Size(Limit::range(0, I64_MAX)), Verbatim),
];

fn plain(value: impl Display) -> String {
    value.to_string()
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

/// Formats a duration in the largest of Aeron's units of which it is a whole number.
fn time(value: std::time::Duration) -> String {
    let nanos = value.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    match units.iter().find(|(_, unit)| nanos != 0 && nanos % unit == 0) {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None => format!("{nanos}ns"),
    }
}

fn ports(range: Option<RangeInclusive<u16>>) -> String {
    range.map_or_else(String::new, |range| format!("{} {}", range.start(), range.end()))
}

fn idle(kind: Option<IdleStrategyKind>) -> Option<&'static str> {
    kind.map(IdleStrategyKind::name)
}

fn threading_mode(mode: ThreadingMode) -> String {
    plain(match mode {
        ThreadingMode::Dedicated => "DEDICATED",
        ThreadingMode::SharedNetwork => "SHARED_NETWORK",
        ThreadingMode::Shared => "SHARED",
        ThreadingMode::Invoker => "INVOKER",
    })
}

fn thread_naming(naming: ThreadNaming) -> String {
    plain(match naming {
        ThreadNaming::Classic => "classic",
        ThreadNaming::New => "new",
    })
}

fn inferable(value: InferableBoolean) -> String {
    plain(match value {
        InferableBoolean::ForceTrue => "true",
        InferableBoolean::ForceFalse => "false",
        InferableBoolean::Infer => "infer",
    })
}

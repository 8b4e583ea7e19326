# Written by `UPDATE_FILES=1 cargo test -p rusteron-codegen` from the tables of settings (`settings.txt`).
from datetime import timedelta
from os import PathLike
from typing import Literal, TypedDict, Union

Dir = Union[str, PathLike[str]]
Seconds = Union[float, timedelta]
IdleStrategy = Literal["spin", "yield", "sleep-ns", "backoff", "noop"]
ThreadingMode = Literal["dedicated", "shared-network", "shared"]
InferableBoolean = Union[bool, Literal["infer"]]
ArchiveThreadingMode = Literal["dedicated", "shared"]
Checksum = Literal["crc-32", "crc-32c"]

class DriverSettings(TypedDict, total=False):
    dir_warn_if_exists: bool
    dir_delete_on_start: bool
    dir_delete_on_shutdown: bool
    file_page_size: int
    perform_storage_checks: bool
    low_file_store_warning_threshold: int
    to_conductor_buffer_length: int
    to_clients_buffer_length: int
    counters_buffer_length: int
    error_buffer_length: int
    loss_report_buffer_length: int
    threading_mode: ThreadingMode
    conductor_idle_strategy: IdleStrategy
    conductor_idle_strategy_init_args: str
    sender_idle_strategy: IdleStrategy
    sender_idle_strategy_init_args: str
    receiver_idle_strategy: IdleStrategy
    receiver_idle_strategy_init_args: str
    shared_idle_strategy: IdleStrategy
    shared_idle_strategy_init_args: str
    shared_network_idle_strategy: IdleStrategy
    shared_network_idle_strategy_init_args: str
    native_resource_agent_idle_strategy: IdleStrategy
    native_resource_agent_idle_strategy_init_args: str
    conductor_cpu_affinity: int
    sender_cpu_affinity: int
    receiver_cpu_affinity: int
    native_resource_agent_cpu_affinity: int
    thread_affinity_use_cpuset_offsets: bool
    thread_affinity_fail_on_validation_errors: bool
    conductor_cycle_threshold: Seconds
    sender_cycle_threshold: Seconds
    receiver_cycle_threshold: Seconds
    driver_timeout: Seconds
    client_liveness_timeout: Seconds
    timer_interval: Seconds
    counters_free_to_reuse_timeout: Seconds
    resource_free_limit: int
    term_buffer_length: int
    ipc_term_buffer_length: int
    term_buffer_sparse_file: bool
    mtu_length: int
    ipc_mtu_length: int
    publication_term_window_length: int
    ipc_publication_term_window_length: int
    publication_linger_timeout: Seconds
    publication_unblock_timeout: Seconds
    publication_connection_timeout: Seconds
    publication_reserved_session_id_low: int
    publication_reserved_session_id_high: int
    spies_simulate_connection: bool
    reliable_stream: bool
    rejoin_stream: bool
    tether_subscriptions: bool
    receiver_group_consideration: InferableBoolean
    image_liveness_timeout: Seconds
    rcv_initial_window_length: int
    rcv_status_message_timeout: Seconds
    untethered_window_limit_timeout: Seconds
    untethered_linger_timeout: Seconds | None
    untethered_resting_timeout: Seconds
    stream_session_limit: int
    flow_control_group_tag: int
    flow_control_group_min_size: int
    flow_control_receiver_timeout: Seconds
    nak_multicast_group_size: int
    nak_multicast_max_backoff: Seconds
    nak_unicast_delay: Seconds
    nak_unicast_retry_delay_ratio: int
    max_resend: int
    retransmit_unicast_delay: Seconds
    retransmit_unicast_linger: Seconds
    socket_so_rcvbuf: int
    socket_so_sndbuf: int
    socket_multicast_ttl: int
    socket_tos: int
    connect_enabled: bool
    send_to_status_poll_ratio: int
    receiver_poll_to_slow_work_ratio: int
    sender_io_vector_capacity: int
    receiver_io_vector_capacity: int
    network_publication_max_messages_per_send: int
    udp_channel_transport_poller_iteration_threshold: int
    udp_channel_transport_poller_socket_poll_limit: int
    name_resolver_init_args: str
    resolver_name: str
    resolver_interface: str
    resolver_bootstrap_neighbor: str
    resolver_neighbor_timeout: Seconds
    self_resolution_interval: Seconds
    resolver_neighbor_resolution_interval: Seconds
    resolver_bootstrap_neighbor_resolution_interval: Seconds
    re_resolution_check_interval: Seconds
    name_resolver_threshold: Seconds
    enable_experimental_features: bool

class ClientSettings(TypedDict, total=False):
    driver_timeout: Seconds
    keepalive_interval: Seconds
    resource_linger_duration: Seconds
    idle_sleep_duration: Seconds
    idle_strategy: IdleStrategy
    idle_strategy_init_args: str
    pre_touch_mapped_memory: bool
    client_name: str

class ArchiveSettings(TypedDict, total=False):
    control_request_channel: str
    control_request_stream_id: int
    control_response_channel: str
    control_response_stream_id: int
    message_timeout: Seconds
    message_retry_attempts: int
    control_term_buffer_length: int
    control_mtu_length: int
    control_term_buffer_sparse: bool
    client_name: str

class ArchiveServerSettings(TypedDict, total=False):
    archive_dir_delete_on_start: bool
    mark_file_dir: Dir
    archive_id: int
    segment_file_length: int
    file_io_max_length: int
    file_sync_level: int
    catalog_file_sync_level: int
    catalog_capacity: int
    low_storage_space_threshold: int
    record_checksum: Checksum | None
    replay_checksum: Checksum | None
    error_buffer_length: int
    control_channel_enabled: bool
    control_channel: str
    control_stream_id: int
    local_control_channel: str
    local_control_stream_id: int
    control_term_buffer_length: int
    control_term_buffer_sparse: bool
    control_mtu_length: int
    connect_timeout: Seconds
    session_liveness_check_interval: Seconds
    max_unauthenticated_sessions: int
    authenticator_supplier: str
    authorisation_service_supplier: str
    max_concurrent_recordings: int
    max_concurrent_replays: int
    max_concurrent_replications: int
    replay_linger_timeout: Seconds
    recording_events_enabled: bool
    recording_events_channel: str
    recording_events_stream_id: int
    threading_mode: ArchiveThreadingMode
    idle_strategy: IdleStrategy
    recorder_idle_strategy: IdleStrategy | None
    replayer_idle_strategy: IdleStrategy | None
    conductor_cycle_threshold: Seconds
    recorder_cycle_threshold: Seconds
    replayer_cycle_threshold: Seconds
    conductor_cpu_affinity: int
    recorder_cpu_affinity: int
    replayer_cpu_affinity: int
    replication_channel: str
    control_response_channel: str
    control_response_stream_id: int
    message_timeout: Seconds
    message_retry_attempts: int

//! The media driver.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver as rust;
use rusteron_media_driver::{Preset, ThreadingMode};

use crate::cnc::CncFile;
use crate::error;
use crate::exit;
use crate::settings::set_by_name;
use crate::slot::DriverSlot;
use crate::slot::{Close, Slot};
use crate::values::py_bool;

/// Drivers that are open at the end of the interpreter are closed then, so that no directory is left behind.
static DRIVERS: Mutex<Vec<Weak<DriverSlot>>> = Mutex::new(Vec::new());

/// A media driver in this process, on threads of its own.
///
/// Closing the driver ends its threads. Clients that are made with the driver itself, as in `Aeron(driver)`, keep it
/// open until they are closed or collected; `close()` closes it at once.
///
/// >>> import rusteron
/// >>> with rusteron.MediaDriver.launch_embedded() as driver:
/// ...     print((driver.aeron_dir / "cnc.dat").exists())
/// True
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct MediaDriver {
    slot: Arc<DriverSlot>,
    aeron_dir: PathBuf,
}

impl MediaDriver {
    pub(crate) fn slot(&self) -> &Arc<DriverSlot> {
        &self.slot
    }

    pub(crate) fn dir(&self) -> &PathBuf {
        &self.aeron_dir
    }

    fn open(
        py: Python<'_>,
        context: rust::Context,
        launch: fn(rust::Context) -> rust::Result<rust::MediaDriver>,
    ) -> PyResult<Self> {
        let driver = exit::detached(py, || launch(context)).map_err(error::client)?;
        let aeron_dir = driver.aeron_dir().to_owned();
        let slot = Slot::new("media driver", driver);
        let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
        drivers.retain(|driver| driver.strong_count() > 0);
        drivers.push(Arc::downgrade(&slot));
        Ok(Self { slot, aeron_dir })
    }
}

#[pymethods]
impl MediaDriver {
    /// Launches a driver in a directory of its own, which is deleted when the driver is closed.
    ///
    /// One thread, shared by all agents, with the idle strategy "backoff", unless a preset or settings say otherwise.
    #[classmethod]
    #[pyo3(signature = (preset=None, **settings))]
    fn launch_embedded(
        cls: &Bound<'_, PyType>,
        preset: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = context(preset)?;
        if preset.is_none() {
            context
                .set_threading_mode(ThreadingMode::Shared)
                .and_then(|context| context.set_shared_idle_strategy(IdleStrategyKind::Backoff))
                .map_err(error::client)?;
        }
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, rust::MediaDriver::launch_embedded_with)
    }

    /// Launches a driver in the directory `dir`, or in Aeron's default directory.
    #[classmethod]
    #[pyo3(signature = (dir=None, preset=None, **settings))]
    fn launch(
        cls: &Bound<'_, PyType>,
        dir: Option<PathBuf>,
        preset: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = context(preset)?;
        if let Some(dir) = dir {
            context.set_dir(dir).map_err(error::client)?;
        }
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, rust::MediaDriver::launch)
    }

    /// The driver's directory, a `pathlib.Path`.
    #[getter]
    fn aeron_dir(&self) -> &PathBuf {
        &self.aeron_dir
    }

    /// True if the driver was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }

    /// Opens the driver's CnC file.
    fn cnc_file(&self) -> PyResult<CncFile> {
        self.slot.enter()?.cnc_file().map(CncFile::from).map_err(error::client)
    }

    /// Ends the driver's threads. Does nothing if the driver is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!(
            "MediaDriver(aeron_dir={:?}, is_closed={})",
            self.aeron_dir,
            py_bool(self.is_closed())
        )
    }
}

/// Closes all drivers, at the end of the interpreter.
pub(crate) fn close_all() {
    let drivers = std::mem::take(&mut *DRIVERS.lock().unwrap_or_else(PoisonError::into_inner));
    for driver in drivers.iter().filter_map(Weak::upgrade) {
        driver.close();
    }
}

fn context(preset: Option<&str>) -> PyResult<rust::Context> {
    match preset {
        Some(name) => name.parse::<Preset>().and_then(rust::Context::with_preset),
        None => rust::Context::new(),
    }
    .map_err(error::client)
}

fn apply(context: &mut rust::Context, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    // Aeron reads the parameters of an idle strategy when the strategy is set.
    for arguments_first in [true, false] {
        error::each_setting(settings, |name, value| {
            if name.ends_with("_init_args") != arguments_first {
                return Ok(());
            }
            set_by_name!(
                context,
                name,
                value,
                [
                    "dir_warn_if_exists" => set_dir_warn_if_exists,
                    "threading_mode" => set_threading_mode,
                    "dir_delete_on_start" => set_dir_delete_on_start,
                    "dir_delete_on_shutdown" => set_dir_delete_on_shutdown,
                    "to_conductor_buffer_length" => set_to_conductor_buffer_length,
                    "to_clients_buffer_length" => set_to_clients_buffer_length,
                    "counters_buffer_length" => set_counters_buffer_length,
                    "error_buffer_length" => set_error_buffer_length,
                    "client_liveness_timeout" => set_client_liveness_timeout,
                    "term_buffer_length" => set_term_buffer_length,
                    "ipc_term_buffer_length" => set_ipc_term_buffer_length,
                    "term_buffer_sparse_file" => set_term_buffer_sparse_file,
                    "perform_storage_checks" => set_perform_storage_checks,
                    "low_file_store_warning_threshold" => set_low_file_store_warning_threshold,
                    "spies_simulate_connection" => set_spies_simulate_connection,
                    "file_page_size" => set_file_page_size,
                    "mtu_length" => set_mtu_length,
                    "ipc_mtu_length" => set_ipc_mtu_length,
                    "ipc_publication_term_window_length" => set_ipc_publication_term_window_length,
                    "publication_term_window_length" => set_publication_term_window_length,
                    "publication_linger_timeout" => set_publication_linger_timeout,
                    "socket_so_rcvbuf" => set_socket_so_rcvbuf,
                    "socket_so_sndbuf" => set_socket_so_sndbuf,
                    "socket_multicast_ttl" => set_socket_multicast_ttl,
                    "socket_tos" => set_socket_tos,
                    "send_to_status_poll_ratio" => set_send_to_status_poll_ratio,
                    "receiver_poll_to_slow_work_ratio" => set_receiver_poll_to_slow_work_ratio,
                    "rcv_status_message_timeout" => set_rcv_status_message_timeout,
                    "image_liveness_timeout" => set_image_liveness_timeout,
                    "rcv_initial_window_length" => set_rcv_initial_window_length,
                    "loss_report_buffer_length" => set_loss_report_buffer_length,
                    "publication_unblock_timeout" => set_publication_unblock_timeout,
                    "publication_connection_timeout" => set_publication_connection_timeout,
                    "timer_interval" => set_timer_interval,
                    "sender_idle_strategy" => set_sender_idle_strategy,
                    "conductor_idle_strategy" => set_conductor_idle_strategy,
                    "receiver_idle_strategy" => set_receiver_idle_strategy,
                    "shared_network_idle_strategy" => set_shared_network_idle_strategy,
                    "shared_idle_strategy" => set_shared_idle_strategy,
                    "native_resource_agent_idle_strategy" => set_native_resource_agent_idle_strategy,
                    "counters_free_to_reuse_timeout" => set_counters_free_to_reuse_timeout,
                    "flow_control_receiver_timeout" => set_flow_control_receiver_timeout,
                    "flow_control_group_tag" => set_flow_control_group_tag,
                    "flow_control_group_min_size" => set_flow_control_group_min_size,
                    "reliable_stream" => set_reliable_stream,
                    "tether_subscriptions" => set_tether_subscriptions,
                    "untethered_window_limit_timeout" => set_untethered_window_limit_timeout,
                    "untethered_linger_timeout" => set_untethered_linger_timeout,
                    "untethered_resting_timeout" => set_untethered_resting_timeout,
                    "driver_timeout" => set_driver_timeout,
                    "nak_multicast_group_size" => set_nak_multicast_group_size,
                    "nak_multicast_max_backoff" => set_nak_multicast_max_backoff,
                    "nak_unicast_delay" => set_nak_unicast_delay,
                    "nak_unicast_retry_delay_ratio" => set_nak_unicast_retry_delay_ratio,
                    "max_resend" => set_max_resend,
                    "retransmit_unicast_delay" => set_retransmit_unicast_delay,
                    "retransmit_unicast_linger" => set_retransmit_unicast_linger,
                    "receiver_group_consideration" => set_receiver_group_consideration,
                    "rejoin_stream" => set_rejoin_stream,
                    "connect_enabled" => set_connect_enabled,
                    "udp_channel_transport_poller_iteration_threshold" => set_udp_channel_transport_poller_iteration_threshold,
                    "udp_channel_transport_poller_socket_poll_limit" => set_udp_channel_transport_poller_socket_poll_limit,
                    "publication_reserved_session_id_low" => set_publication_reserved_session_id_low,
                    "publication_reserved_session_id_high" => set_publication_reserved_session_id_high,
                    "resolver_neighbor_timeout" => set_resolver_neighbor_timeout,
                    "self_resolution_interval" => set_self_resolution_interval,
                    "resolver_neighbor_resolution_interval" => set_resolver_neighbor_resolution_interval,
                    "resolver_bootstrap_neighbor_resolution_interval" => set_resolver_bootstrap_neighbor_resolution_interval,
                    "re_resolution_check_interval" => set_re_resolution_check_interval,
                    "conductor_cycle_threshold" => set_conductor_cycle_threshold,
                    "sender_cycle_threshold" => set_sender_cycle_threshold,
                    "receiver_cycle_threshold" => set_receiver_cycle_threshold,
                    "name_resolver_threshold" => set_name_resolver_threshold,
                    "receiver_io_vector_capacity" => set_receiver_io_vector_capacity,
                    "sender_io_vector_capacity" => set_sender_io_vector_capacity,
                    "network_publication_max_messages_per_send" => set_network_publication_max_messages_per_send,
                    "resource_free_limit" => set_resource_free_limit,
                    "conductor_cpu_affinity" => set_conductor_cpu_affinity,
                    "receiver_cpu_affinity" => set_receiver_cpu_affinity,
                    "sender_cpu_affinity" => set_sender_cpu_affinity,
                    "native_resource_agent_cpu_affinity" => set_native_resource_agent_cpu_affinity,
                    "thread_affinity_use_cpuset_offsets" => set_thread_affinity_use_cpuset_offsets,
                    "thread_affinity_fail_on_validation_errors" => set_thread_affinity_fail_on_validation_errors,
                    "enable_experimental_features" => set_enable_experimental_features,
                    "stream_session_limit" => set_stream_session_limit,
                ],
                text [
                    "sender_idle_strategy_init_args" => set_sender_idle_strategy_init_args,
                    "conductor_idle_strategy_init_args" => set_conductor_idle_strategy_init_args,
                    "receiver_idle_strategy_init_args" => set_receiver_idle_strategy_init_args,
                    "shared_network_idle_strategy_init_args" => set_shared_network_idle_strategy_init_args,
                    "shared_idle_strategy_init_args" => set_shared_idle_strategy_init_args,
                    "native_resource_agent_idle_strategy_init_args" => set_native_resource_agent_idle_strategy_init_args,
                    "resolver_name" => set_resolver_name,
                    "resolver_interface" => set_resolver_interface,
                    "resolver_bootstrap_neighbor" => set_resolver_bootstrap_neighbor,
                    "name_resolver_init_args" => set_name_resolver_init_args,
                ]
            );
            Ok(())
        })?;
    }
    Ok(())
}

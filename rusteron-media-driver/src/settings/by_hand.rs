//! Settings with more than one value, or with a getter of another name in C, which are written by
//! hand.

use std::ffi::c_int;
use std::ops::RangeInclusive;
use std::time::Duration;

use rusteron_core::ffi::{self, Fallible};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::DriverContext;

impl DriverContext {
    /// Sets the group tag in the status messages of subscriptions, for [tagged flow
    /// control](crate::FlowControlStrategy::MulticastTagged). A channel can override it. The
    /// default `None` is no tag.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_receiver_group_tag`; the environment variable is
    /// `AERON_RECEIVER_GROUP_TAG`.
    #[doc(alias("aeron_driver_context_set_receiver_group_tag", "AERON_RECEIVER_GROUP_TAG"))]
    pub fn set_receiver_group_tag(&mut self, tag: Option<i64>) -> Result<&mut Self> {
        // SAFETY: the context is live and not yet used by a driver.
        unsafe {
            sys::aeron_driver_context_set_receiver_group_tag(
                self.as_ptr(),
                tag.is_some(),
                tag.unwrap_or(-1),
            )
        }
        .into_result()?;
        Ok(self)
    }

    /// Returns the group tag in the status messages of subscriptions, if there is one.
    ///
    /// Corresponds to `aeron_driver_context_get_receiver_group_tag_is_present` and
    /// `aeron_driver_context_get_receiver_group_tag_value`.
    #[doc(alias(
        "aeron_driver_context_get_receiver_group_tag_is_present",
        "aeron_driver_context_get_receiver_group_tag_value"
    ))]
    pub fn receiver_group_tag(&self) -> Option<i64> {
        // SAFETY: the context is live.
        unsafe {
            sys::aeron_driver_context_get_receiver_group_tag_is_present(self.as_ptr())
                .then(|| sys::aeron_driver_context_get_receiver_group_tag_value(self.as_ptr()))
        }
    }

    /// Sets the range of ports for control addresses of publications with port 0. The default
    /// `None` leaves the port to the operating system.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a range that is empty or not within 1 to 65534.
    ///
    /// Corresponds to `aeron_driver_context_set_sender_wildcard_port_range`; the environment variable
    /// is `AERON_SENDER_WILDCARD_PORT_RANGE`, such as `20000 20100`.
    #[doc(alias(
        "aeron_driver_context_set_sender_wildcard_port_range",
        "AERON_SENDER_WILDCARD_PORT_RANGE"
    ))]
    pub fn set_sender_wildcard_port_range(
        &mut self,
        ports: Option<RangeInclusive<u16>>,
    ) -> Result<&mut Self> {
        self.set_ports(
            "sender_wildcard_port_range",
            ports,
            sys::aeron_driver_context_set_sender_wildcard_port_range,
        )
    }

    /// Returns the range of ports for control addresses of publications.
    ///
    /// Corresponds to `aeron_driver_context_get_sender_wildcard_port_range`.
    #[doc(alias = "aeron_driver_context_get_sender_wildcard_port_range")]
    pub fn sender_wildcard_port_range(&self) -> Option<RangeInclusive<u16>> {
        self.ports(sys::aeron_driver_context_get_sender_wildcard_port_range)
    }

    /// Sets the range of ports for endpoints of subscriptions with port 0. The default `None`
    /// leaves the port to the operating system.
    ///
    /// # Errors
    /// As for [`set_sender_wildcard_port_range`](Self::set_sender_wildcard_port_range).
    ///
    /// Corresponds to `aeron_driver_context_set_receiver_wildcard_port_range`; the environment variable
    /// is `AERON_RECEIVER_WILDCARD_PORT_RANGE`.
    #[doc(alias(
        "aeron_driver_context_set_receiver_wildcard_port_range",
        "AERON_RECEIVER_WILDCARD_PORT_RANGE"
    ))]
    pub fn set_receiver_wildcard_port_range(
        &mut self,
        ports: Option<RangeInclusive<u16>>,
    ) -> Result<&mut Self> {
        self.set_ports(
            "receiver_wildcard_port_range",
            ports,
            sys::aeron_driver_context_set_receiver_wildcard_port_range,
        )
    }

    /// Returns the range of ports for endpoints of subscriptions.
    ///
    /// Corresponds to `aeron_driver_context_get_receiver_wildcard_port_range`.
    #[doc(alias = "aeron_driver_context_get_receiver_wildcard_port_range")]
    pub fn receiver_wildcard_port_range(&self) -> Option<RangeInclusive<u16>> {
        self.ports(sys::aeron_driver_context_get_receiver_wildcard_port_range)
    }

    fn set_ports(
        &mut self,
        name: &str,
        ports: Option<RangeInclusive<u16>>,
        set: unsafe extern "C" fn(*mut sys::aeron_driver_context_t, u16, u16) -> c_int,
    ) -> Result<&mut Self> {
        // C reads 0 as none. If all ports are taken, C searches a range that ends in 65535 forever.
        let (low, high) = ports.as_ref().map_or((0, 0), |ports| (*ports.start(), *ports.end()));
        if ports.is_some() && (low == 0 || low > high || high == u16::MAX) {
            let text = format!("{name}: {low} to {high} is no range within 1 to 65534");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        // SAFETY: the context is live and not yet used by a driver.
        unsafe { set(self.as_ptr(), low, high) }.into_result()?;
        Ok(self)
    }

    fn ports(
        &self,
        get: unsafe extern "C" fn(*mut sys::aeron_driver_context_t, *mut u16, *mut u16) -> c_int,
    ) -> Option<RangeInclusive<u16>> {
        let (mut low, mut high) = (0, 0);
        // SAFETY: the context is live; C writes two numbers.
        unsafe { get(self.as_ptr(), &mut low, &mut high) };
        ((low, high) != (0, 0)).then_some(low..=high)
    }

    /// Sets how often the bootstrap neighbors are resolved again.
    ///
    /// Resolution: nanoseconds.
    ///
    /// Default: `10s`.
    ///
    /// Environment: `AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL`, with values
    /// from 1ms; Aeron cuts others.
    ///
    /// # Errors
    /// If `value` is too long for C's integer.
    #[doc(alias = "aeron_driver_context_set_resolver_bootstrap_neighbor_resolution_interval_ns")]
    pub fn set_resolver_bootstrap_neighbor_resolution_interval(
        &mut self,
        value: Duration,
    ) -> Result<&mut Self> {
        let value = ffi::nanos("resolver_bootstrap_neighbor_resolution_interval_ns", value)?;
        // SAFETY: the context is live and not yet used by a driver.
        unsafe {
            sys::aeron_driver_context_set_resolver_bootstrap_neighbor_resolution_interval_ns(
                self.as_ptr(),
                value,
            )
        }
        .into_result()?;
        Ok(self)
    }

    /// Returns how often the bootstrap neighbors are resolved again.
    #[doc(alias = "aeron_driver_context_get_resolver_bootstrap_resolution_interval_ns")]
    pub fn resolver_bootstrap_neighbor_resolution_interval(&self) -> Duration {
        // SAFETY: the context is live.
        Duration::from_nanos(unsafe {
            sys::aeron_driver_context_get_resolver_bootstrap_resolution_interval_ns(self.as_ptr())
        })
    }

    /// The CPU of each agent's thread, -1 for none.
    pub(crate) fn cpu_affinities(&self) -> [(&'static str, i32); 4] {
        [
            ("conductor", self.conductor_cpu_affinity()),
            ("sender", self.sender_cpu_affinity()),
            ("receiver", self.receiver_cpu_affinity()),
            ("native_resource_agent", self.native_resource_agent_cpu_affinity()),
        ]
    }

    pub(crate) fn has_cpu_affinity(&self) -> bool {
        self.cpu_affinities().iter().any(|(_, cpu)| *cpu >= 0)
    }
}

//! Aeron's strategies by name: flow control, congestion control, name resolution.

use std::ffi::CString;

use rusteron_core::Result;
use rusteron_core::ffi::Fallible;
use rusteron_sys::driver as sys;

use crate::DriverContext;
use crate::enumerations::named;

named! {
    /// Flow control of a driver's publications: the receivers' windows that a sender obeys.
    ///
    /// For multicast and multi-destination publications, `fc=` in the channel overrides it.
    #[non_exhaustive]
    FlowControlStrategy, "a flow control strategy";
    /// The window of the only receiver. Aeron's default for unicast.
    UnicastMax = "unicast_max", "aeron_unicast_flow_control_strategy_supplier";
    /// The window of the fastest receiver. Slower receivers lose messages. Aeron's default for
    /// multicast.
    MulticastMax = "multicast_max", "aeron_max_multicast_flow_control_strategy_supplier";
    /// The window of the slowest receiver, which slows down the others.
    MulticastMin = "multicast_min", "aeron_min_flow_control_strategy_supplier";
    /// The window of the slowest receiver with the [group
    /// tag](DriverContext::set_flow_control_group_tag). Only receivers with the tag slow down the others.
    MulticastTagged = "multicast_tagged", "aeron_tagged_flow_control_strategy_supplier";
}

named! {
    /// Congestion control of a driver's receivers: the size of the window that they report to a
    /// sender.
    #[non_exhaustive]
    CongestionControlStrategy, "a congestion control strategy";
    /// The strategy that `cc=` in the channel names, or else a static window. Aeron's default.
    FromChannel = "default", "aeron_congestion_control_default_strategy_supplier";
    /// A window of constant length.
    Static = "static", "aeron_static_window_congestion_control_strategy_supplier";
    /// A window that grows and shrinks with losses and round-trip times. Its parameters come from the
    /// environment: `AERON_CUBICCONGESTIONCONTROL_MEASURERTT`, `…_INITIALRTT` and `…_TCPMODE`.
    Cubic = "cubic", "aeron_cubic_congestion_control_strategy_supplier";
}

named! {
    /// Name resolution of a driver: from names in channels to addresses.
    #[non_exhaustive]
    NameResolver, "a name resolver";
    /// By the operating system. Aeron's default.
    System = "default", "aeron_default_name_resolver_supplier";
    /// By asking other drivers. [`set_resolver_name`](DriverContext::set_resolver_name) and
    /// [`set_resolver_interface`](DriverContext::set_resolver_interface) make this driver known to them.
    Driver = "driver", "aeron_driver_name_resolver_supplier";
    /// By a table in [`set_name_resolver_init_args`](DriverContext::set_name_resolver_init_args), for
    /// tests. Rows have a name, an address and the address of the second resolution, such as
    /// `a,127.0.0.1,127.0.0.2|b,127.0.0.1,127.0.0.1`. Other names go to the operating system.
    CsvTable = "csv_table", "aeron_csv_table_name_resolver_supplier";
}

/// A variant's name for C. Only such names reach C, which has them in its own table: C would look up any other name as a
/// function of the program, and call it.
fn c_name(name: &'static str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// Writes the setter and the getter of a function that C finds by a name.
macro_rules! supplier {
    (
        $(#[$set_meta:meta])* $set:ident = $c_set:ident;
        $(#[$get_meta:meta])* $get:ident = $c_get:ident;
        $type:ident, $c_by_name:ident
    ) => {
        impl DriverContext {
            $(#[$set_meta])*
            pub fn $set(&mut self, value: $type) -> Result<&mut Self> {
                // SAFETY: C reads the terminated name, and has it in its table. The context is live and not yet used by
                // a driver.
                unsafe { sys::$c_set(self.as_ptr(), sys::$c_by_name(c_name(value.name()).as_ptr())) }
                    .into_result()?;
                Ok(self)
            }

            $(#[$get_meta])*
            pub fn $get(&self) -> Option<$type> {
                // SAFETY: the context is live.
                let set = unsafe { sys::$c_get(self.as_ptr()) }? as usize;
                // Each variant is one function of the C library.
                let is_set = |value: &$type| {
                    // SAFETY: C reads the terminated name, and has it in its table.
                    let function = unsafe { sys::$c_by_name(c_name(value.name()).as_ptr()) };
                    function.is_some_and(|function| function as usize == set)
                };
                $type::ALL.iter().copied().find(is_set)
            }
        }
    };
}

supplier! {
    /// Sets the flow control of unicast publications.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_unicast_flowcontrol_supplier`.
    #[doc(alias = "aeron_driver_context_set_unicast_flowcontrol_supplier")]
    set_unicast_flow_control = aeron_driver_context_set_unicast_flowcontrol_supplier;
    /// Returns the flow control of unicast publications. `None` for a strategy that is not Aeron's,
    /// which only the environment can set.
    ///
    /// Corresponds to `aeron_driver_context_get_unicast_flowcontrol_supplier`.
    #[doc(alias = "aeron_driver_context_get_unicast_flowcontrol_supplier")]
    unicast_flow_control = aeron_driver_context_get_unicast_flowcontrol_supplier;
    FlowControlStrategy, aeron_flow_control_strategy_supplier_by_name
}

supplier! {
    /// Sets the flow control of multicast publications whose channel has no `fc=`.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_multicast_flowcontrol_supplier`.
    #[doc(alias = "aeron_driver_context_set_multicast_flowcontrol_supplier")]
    set_multicast_flow_control = aeron_driver_context_set_multicast_flowcontrol_supplier;
    /// Returns the flow control of multicast publications. `None` for a strategy that is not
    /// Aeron's.
    ///
    /// Corresponds to `aeron_driver_context_get_multicast_flowcontrol_supplier`.
    #[doc(alias = "aeron_driver_context_get_multicast_flowcontrol_supplier")]
    multicast_flow_control = aeron_driver_context_get_multicast_flowcontrol_supplier;
    FlowControlStrategy, aeron_flow_control_strategy_supplier_by_name
}

supplier! {
    /// Sets the congestion control of images.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_congestioncontrol_supplier`.
    #[doc(alias = "aeron_driver_context_set_congestioncontrol_supplier")]
    set_congestion_control = aeron_driver_context_set_congestioncontrol_supplier;
    /// Returns the congestion control of images. `None` for a strategy that is not Aeron's.
    ///
    /// Corresponds to `aeron_driver_context_get_congestioncontrol_supplier`.
    #[doc(alias = "aeron_driver_context_get_congestioncontrol_supplier")]
    congestion_control = aeron_driver_context_get_congestioncontrol_supplier;
    CongestionControlStrategy, aeron_congestion_control_strategy_supplier_load
}

supplier! {
    /// Sets the name resolver.
    ///
    /// [`NameResolver::Driver`] needs a [resolver name](Self::set_resolver_name) and a [resolver
    /// interface](Self::set_resolver_interface). Without them, the launch fails.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_name_resolver_supplier`.
    #[doc(alias = "aeron_driver_context_set_name_resolver_supplier")]
    set_name_resolver = aeron_driver_context_set_name_resolver_supplier;
    /// Returns the name resolver. `None` for a resolver that is not Aeron's.
    ///
    /// Corresponds to `aeron_driver_context_get_name_resolver_supplier`.
    #[doc(alias = "aeron_driver_context_get_name_resolver_supplier")]
    name_resolver = aeron_driver_context_get_name_resolver_supplier;
    NameResolver, aeron_name_resolver_supplier_load
}

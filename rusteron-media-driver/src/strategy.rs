//! Aeron's strategies by name: flow control, congestion control, name resolution.

use std::ffi::CString;

use rusteron_core::Result;
use rusteron_core::ffi::Fallible;
use rusteron_sys::driver as sys;

use crate::Context;
use crate::names::named;

named! {
    /// Flow control of a driver's publications: the receivers' windows that a sender obeys.
    ///
    /// For multicast and multi-destination publications, `fc=` in the channel overrides it.
    #[non_exhaustive]
    FlowControlStrategy, "a flow control strategy";
    /// The window of the only receiver. Aeron's default for unicast.
    UnicastMax = "unicast_max",
    /// The window of the fastest receiver. Slower receivers lose messages. Aeron's default for
    /// multicast.
    MulticastMax = "multicast_max",
    /// The window of the slowest receiver, which slows down the others.
    MulticastMin = "multicast_min",
    /// The window of the slowest receiver with the [group
    /// tag](Context::set_flow_control_group_tag). Only receivers with the tag slow down the others.
    MulticastTagged = "multicast_tagged",
}

named! {
    /// Congestion control of a driver's receivers: the size of the window that they report to a
    /// sender.
    #[non_exhaustive]
    CongestionControlStrategy, "a congestion control strategy";
    /// The strategy that `cc=` in the channel names, or else a static window. Aeron's default.
    FromChannel = "default",
    /// A window of constant length.
    Static = "static",
    /// A window that grows and shrinks with losses and round-trip times. Its parameters come from the
    /// environment: `AERON_CUBICCONGESTIONCONTROL_MEASURERTT`, `…_INITIALRTT` and `…_TCPMODE`.
    Cubic = "cubic",
}

named! {
    /// Name resolution of a driver: from names in channels to addresses.
    #[non_exhaustive]
    NameResolver, "a name resolver";
    /// By the operating system. Aeron's default.
    System = "default",
    /// By asking other drivers. [`set_resolver_name`](Context::set_resolver_name) and
    /// [`set_resolver_interface`](Context::set_resolver_interface) make this driver known to them.
    Driver = "driver",
    /// By a table in [`set_name_resolver_init_args`](Context::set_name_resolver_init_args), for
    /// tests. Rows have a name, an address and the address of the second resolution, such as
    /// `a,127.0.0.1,127.0.0.2|b,127.0.0.1,127.0.0.1`. Other names go to the operating system.
    CsvTable = "csv_table",
}

/// Writes the setter and the getter of a function that C finds by a name.
macro_rules! supplier {
    (
        $(#[$set_meta:meta])* $set:ident = $c_set:ident;
        $(#[$get_meta:meta])* $get:ident = $c_get:ident;
        $type:ident, $supplier:ident
    ) => {
        impl Context {
            $(#[$set_meta])*
            pub fn $set(&mut self, value: $type) -> Result<&mut Self> {
                // SAFETY: the context is live and not yet used by a driver; the function is C's own.
                unsafe { sys::$c_set(self.as_ptr(), $supplier(value)) }.into_result()?;
                Ok(self)
            }

            $(#[$get_meta])*
            pub fn $get(&self) -> Option<$type> {
                // SAFETY: the context is live.
                let set = unsafe { sys::$c_get(self.as_ptr()) }? as usize;
                // Each variant is one function of the C library.
                let is_set = |value: &$type| $supplier(*value).is_some_and(|f| f as usize == set);
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
    FlowControlStrategy, flow_control_supplier
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
    FlowControlStrategy, flow_control_supplier
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
    CongestionControlStrategy, congestion_control_supplier
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
    NameResolver, name_resolver_supplier
}

/// A variant's name for C. Only such names reach C, which has them in its own table: C would look up any other name as a
/// function of the program, and call it.
fn c_name(name: &'static str) -> CString {
    CString::new(name).unwrap_or_default()
}

fn flow_control_supplier(
    strategy: FlowControlStrategy,
) -> sys::aeron_flow_control_strategy_supplier_func_t {
    // SAFETY: C only reads the terminated name, and finds it in its table.
    unsafe { sys::aeron_flow_control_strategy_supplier_by_name(c_name(strategy.name()).as_ptr()) }
}

fn congestion_control_supplier(
    strategy: CongestionControlStrategy,
) -> sys::aeron_congestion_control_strategy_supplier_func_t {
    // SAFETY: C only reads the terminated name, and finds it in its table.
    unsafe {
        sys::aeron_congestion_control_strategy_supplier_load(c_name(strategy.name()).as_ptr())
    }
}

fn name_resolver_supplier(resolver: NameResolver) -> sys::aeron_name_resolver_supplier_func_t {
    // SAFETY: C only reads the terminated name, and finds it in its table.
    unsafe { sys::aeron_name_resolver_supplier_load(c_name(resolver.name()).as_ptr()) }
}

//! Settings that Aeron would reject only after it has made the directory, or not at all.

use rusteron_client::__private as ffi;
use rusteron_client::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::context::Context;
use crate::strategy::NameResolver;

/// Refuses settings that C would accept.
pub(crate) fn settings(context: &Context) -> Result<()> {
    if let Some(agent) = context.unset_idle_strategy() {
        return invalid(format!("{agent}_idle_strategy: unset, because its setter failed"));
    }
    // SAFETY: the context is live, and the name that C returns is static.
    let interceptor = unsafe {
        let name = sys::rusteron_driver_context_unusable_interceptor(context.as_ptr());
        ffi::lossy(name)
    };
    if !interceptor.is_empty() {
        return invalid(format!(
            "udp_channel_outgoing_interceptors: {interceptor:?} is for incoming datagrams only"
        ));
    }
    if context.name_resolver() == Some(NameResolver::Driver) {
        check_resolver(context)?;
    }
    Ok(())
}

fn check_resolver(context: &Context) -> Result<()> {
    let (name, interface) = (context.resolver_name(), context.resolver_interface());
    for (setting, value) in [("resolver_name", &name), ("resolver_interface", &interface)] {
        // C reads the length of a text without checking that there is one.
        if value.is_empty() {
            return invalid(format!("{setting}: unset, and NameResolver::Driver needs it"));
        }
    }
    if !ffi::is_safe_address(&interface, true) {
        return invalid(format!("resolver_interface: {interface:?} is no address"));
    }
    let text = context.resolver_bootstrap_neighbor();
    let neighbors = || text.split(',').filter(|neighbor| !neighbor.is_empty());
    if let Some(neighbor) = neighbors().find(|neighbor| !ffi::is_safe_address(neighbor, false)) {
        return invalid(format!("resolver_bootstrap_neighbor: {neighbor:?} is no address"));
    }
    // C allocates one byte for each byte of the text and one for each neighbor, and writes
    // addresses.
    let count = neighbors().count();
    if text.len() + count < count * size_of::<usize>() {
        return invalid(format!(
            "resolver_bootstrap_neighbor: {text:?} is too short for {count} of hostname:port"
        ));
    }
    Ok(())
}

fn invalid(text: String) -> Result<()> {
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

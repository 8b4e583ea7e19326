//! Settings that Aeron would notice only after it has made the directory, or not at all.

use std::env;
use std::ffi::OsStr;

use rusteron_client::ffi;
use rusteron_client::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::context::Context;
use crate::strategy::NameResolver;

/// Refuses environment variables for which C would write to nowhere, or fail without a reason.
pub(crate) fn environment() -> Result<()> {
    // Any name may be in a library, which C loads before it looks for it.
    if env::var_os("AERON_DRIVER_DYNAMIC_LIBRARIES").is_none_or(|names| names.is_empty()) {
        for variable in [
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
            "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA",
        ] {
            check_variable(variable, |name| {
                name == "default" || name == "aeron_udp_channel_transport_bindings_default"
            })?;
        }
    }
    for variable in
        ["AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS"]
    {
        let is_list = |names: &OsStr| names.as_encoded_bytes().iter().any(|&byte| byte != b',');
        check_variable(variable, is_list)?;
    }
    Ok(())
}

fn check_variable(variable: &str, is_valid: impl FnOnce(&OsStr) -> bool) -> Result<()> {
    match env::var_os(variable) {
        Some(value) if !is_valid(&value) => invalid(format!("{variable}: there is no {value:?}")),
        _ => Ok(()),
    }
}

/// Refuses settings that C would not.
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
        // C reads the length of what is not there.
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
    // C allocates a byte for each of the text's and one for each neighbor, and writes their addresses.
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

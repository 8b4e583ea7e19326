//! Fuzzed names and addresses resolve to this host or to nothing, so that no packet leaves it.

use std::ffi::{c_char, c_int, c_void};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr;

unsafe extern "C" {
    fn __real_getaddrinfo(
        node: *const c_char,
        service: *const c_char,
        hints: *const libc::addrinfo,
        found: *mut *mut libc::addrinfo,
    ) -> c_int;
    fn __real_inet_pton(family: c_int, text: *const c_char, address: *mut c_void) -> c_int;
}

/// # Safety
/// As for `getaddrinfo`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    found: *mut *mut libc::addrinfo,
) -> c_int {
    // SAFETY: the caller's arguments, but for the name, which has to be a number.
    unsafe {
        let mut numeric = if hints.is_null() { std::mem::zeroed() } else { *hints };
        numeric.ai_flags |= libc::AI_NUMERICHOST;
        let is_localhost =
            !node.is_null() && std::ffi::CStr::from_ptr(node).to_bytes() == b"localhost";
        let node = match (is_localhost, numeric.ai_family) {
            (true, libc::AF_INET6) => c"::1".as_ptr(),
            (true, _) => c"127.0.0.1".as_ptr(),
            (false, _) => node,
        };
        let outcome = __real_getaddrinfo(node, service, &numeric, found);
        if outcome != 0 {
            return outcome;
        }
        let address = (**found).ai_addr;
        let is_local = match i32::from((*address).sa_family) {
            libc::AF_INET => is_local_ip4((*address.cast::<libc::sockaddr_in>()).sin_addr),
            libc::AF_INET6 => is_local_ip6((*address.cast::<libc::sockaddr_in6>()).sin6_addr),
            _ => false,
        };
        if !is_local {
            libc::freeaddrinfo(*found);
            *found = ptr::null_mut();
            return libc::EAI_NONAME;
        }
        0
    }
}

/// # Safety
/// As for `inet_pton`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_inet_pton(
    family: c_int,
    text: *const c_char,
    address: *mut c_void,
) -> c_int {
    // SAFETY: the caller's arguments; the address is of the family.
    unsafe {
        let is_address = __real_inet_pton(family, text, address) == 1
            && match family {
                libc::AF_INET => is_local_ip4(*address.cast()),
                libc::AF_INET6 => is_local_ip6(*address.cast()),
                _ => false,
            };
        c_int::from(is_address)
    }
}

fn is_local_ip4(address: libc::in_addr) -> bool {
    let address = Ipv4Addr::from(u32::from_be(address.s_addr));
    address.is_loopback() || address.is_unspecified()
}

fn is_local_ip6(address: libc::in6_addr) -> bool {
    let address = Ipv6Addr::from(address.s6_addr);
    address.is_loopback() || address.is_unspecified()
}

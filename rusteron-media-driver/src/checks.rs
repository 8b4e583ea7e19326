//! Settings that Aeron would reject only after it has made the directory, without their names, or not
//! at all.

use std::fs;
use std::time::Duration;

use rusteron_core::channel::is_safe_for_c;
use rusteron_core::ffi::{self, Fallible};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::context::DriverContext;
use crate::settings::Setting;
use crate::strategy::NameResolver;

impl DriverContext {
    /// Checks the settings. A launch does the same first.
    ///
    /// A launch can fail for other reasons: a directory in use, an address in use, CPUs that the
    /// process may not use.
    ///
    /// ```
    /// use rusteron_media_driver::DriverContext;
    ///
    /// # fn main() -> Result<(), rusteron_media_driver::Error> {
    /// let mut context = DriverContext::new()?;
    /// context.set_term_buffer_length(100)?.set_mtu_length(1400)?;
    /// let error = context.check().unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "term_buffer_length (AERON_TERM_BUFFER_LENGTH): 100 is not a power of two from 64k to 1g; \
    ///      mtu_length (AERON_MTU_LENGTH): 1400 is not a multiple of 32 from 64 to 65504"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`], with name, value and range of each invalid setting.
    pub fn check(&self) -> Result<()> {
        let mut problems = strategies(self);
        // C checks these one by one, mostly without saying whose size it is.
        problems.extend(Self::settings().filter_map(|setting| setting.problem(self)));
        problems.extend(vectors(self));
        problems.extend(timeouts(self));
        problems.extend(session_ids(self));
        problems.extend(frames(self));
        problems.extend(cpus(self));
        problems.extend(fixed_loss(self));
        if self.name_resolver() == Some(NameResolver::Driver) {
            problems.extend(resolver(self));
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidArgument, problems.join("; ")))
    }
}

fn strategies(context: &DriverContext) -> Vec<String> {
    let unset = context
        .unset_idle_strategy()
        .map(|setting| format!("{setting}: unset, because its setter failed"));
    // SAFETY: the context is live, and the name that C returns is static.
    let interceptor = unsafe {
        let name = sys::rusteron_driver_context_unusable_interceptor(context.as_ptr());
        ffi::lossy(name)
    };
    let interceptor = (!interceptor.is_empty()).then(|| {
        format!("udp_channel_outgoing_interceptors: {interceptor:?} is for incoming datagrams only")
    });
    unset.into_iter().chain(interceptor).collect()
}

/// The name and the variable of a setting.
fn title(name: &str) -> String {
    let setting = DriverContext::settings().find(|setting| setting.name == name);
    setting.map_or_else(|| name.to_owned(), Setting::title)
}

fn vectors(context: &DriverContext) -> Option<String> {
    let messages = context.datagrams_per_send();
    let capacity = context.sender_io_vector_capacity();
    (messages > capacity).then(|| {
        let [title, other] =
            ["network_publication_max_messages_per_send", "sender_io_vector_capacity"].map(title);
        format!("{title}: {messages} is more than {other}: {capacity}")
    })
}

/// Checks the timeouts that have to be longer than others.
fn timeouts(context: &DriverContext) -> Vec<String> {
    type Timeout = (&'static str, Option<Duration>);
    let timer = ("timer_interval", Some(context.timer_interval()));
    let liveness = ("client_liveness_timeout", Some(context.client_liveness_timeout()));
    let pairs = [
        (("publication_unblock_timeout", Some(context.publication_unblock_timeout())), liveness),
        (liveness, timer),
        (
            ("untethered_window_limit_timeout", Some(context.untethered_window_limit_timeout())),
            timer,
        ),
        (("untethered_resting_timeout", Some(context.untethered_resting_timeout())), timer),
        (("untethered_linger_timeout", context.untethered_linger_timeout()), timer),
    ];
    let problem = |((name, long), (other, short)): (Timeout, Timeout)| {
        let (timeout, least) = (long?, short?);
        (timeout <= least).then(|| {
            format!("{}: {timeout:?} is not longer than {}: {least:?}", title(name), title(other))
        })
    };
    pairs.into_iter().filter_map(problem).collect()
}

/// Checks the range of reserved session ids, as Java's driver does. A request for the next session
/// id walks over all that are not reserved, and never ends if none of them is free.
fn session_ids(context: &DriverContext) -> Option<String> {
    let low = context.publication_reserved_session_id_low();
    let high = context.publication_reserved_session_id_high();
    let problem = if low > high {
        "is greater than"
    } else if high.checked_sub(low).is_none() {
        "reserves more than half of all session ids, up to"
    } else {
        return None;
    };
    let [title, other] =
        ["publication_reserved_session_id_low", "publication_reserved_session_id_high"].map(title);
    Some(format!("{title}: {low} {problem} {other}: {high}"))
}

/// Checks that frames fit into a receiver's window and a socket's buffers. A sender never sends a
/// frame that is longer than the window.
fn frames(context: &DriverContext) -> Vec<String> {
    let (mtu, window) = (context.mtu_length(), context.rcv_initial_window_length());
    let (send, receive) = (context.socket_so_sndbuf(), context.socket_so_rcvbuf());
    let [mtu_title, window_title] = ["mtu_length", "rcv_initial_window_length"].map(title);
    let mut problems = Vec::new();
    if window < mtu {
        problems.push(format!("{window_title}: {window} is less than {mtu_title}: {mtu}"));
    }
    for (title, length, direction, buffer, requested, limit) in [
        (mtu_title, mtu, SO_SNDBUF, "socket_so_sndbuf", send, "net.core.wmem_max"),
        (window_title, window, SO_RCVBUF, "socket_so_rcvbuf", receive, "net.core.rmem_max"),
    ] {
        if let Some(granted) = granted(direction, requested).filter(|granted| *granted < length) {
            let buffer = self::title(buffer);
            problems.push(format!(
                "{title}: {length} is more than the operating system grants for {buffer}: {requested}, which is \
                 {granted}; lower the first, or raise the second and, on Linux, the limit {limit}"
            ));
        }
    }
    problems
}

#[cfg(unix)]
use libc::{SO_RCVBUF, SO_SNDBUF};
#[cfg(not(unix))]
const SO_RCVBUF: i32 = 0;
#[cfg(not(unix))]
const SO_SNDBUF: i32 = 0;

/// Returns the length of a socket's buffer that the operating system grants; 0 requests its
/// default. `None` if it does not tell.
#[cfg(unix)]
fn granted(option: libc::c_int, requested: usize) -> Option<usize> {
    use std::os::fd::AsRawFd;

    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    let mut length = libc::c_int::try_from(requested).ok()?;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw mut length).cast::<libc::c_void>();
    // SAFETY: the socket is open, and both calls access one integer that outlives them.
    let is_told = unsafe {
        (requested == 0
            || libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, size) == 0)
            && libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, &mut size) == 0
    };
    usize::try_from(length).ok().filter(|_| is_told)
}

/// There, C's text says what is wrong.
#[cfg(not(unix))]
fn granted(_option: i32, _requested: usize) -> Option<usize> {
    None
}

/// Checks the arguments of the interceptor `fixed-loss`, with which C would leave a driver half made.
fn fixed_loss(context: &DriverContext) -> Option<String> {
    // SAFETY: the context is live and not used by a driver.
    let checked = unsafe { sys::rusteron_driver_context_check_fixed_loss(context.as_ptr()) };
    checked.into_result().err().map(|_| {
        let name = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";
        format!("{name}: cannot be read as the arguments of fixed-loss")
    })
}

/// Checks the CPUs of threads: C indexes tables of the machine's CPUs with the numbers.
fn cpus(context: &DriverContext) -> Vec<String> {
    let offsets = context.thread_affinity_use_cpuset_offsets();
    let last = if offsets { i32::from(u8::MAX) } else { last_cpu() };
    let problem = |(agent, cpu): (&str, i32)| {
        (!(-1..=last).contains(&cpu))
            .then(|| format!("{agent}_cpu_affinity: {cpu} is not within -1 (for none) to {last}"))
    };
    context.cpu_affinities().into_iter().filter_map(problem).collect()
}

/// Returns the highest number of a CPU. C cuts numbers down to eight bits.
fn last_cpu() -> i32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    // Such as `0-3,8-11`.
    let last = online.trim().rsplit([',', '-']).next().and_then(|last| last.parse().ok());
    last.unwrap_or(i32::from(u8::MAX)).min(i32::from(u8::MAX))
}

fn resolver(context: &DriverContext) -> Option<String> {
    let (name, interface) = (context.resolver_name(), context.resolver_interface());
    for (setting, value) in [("resolver_name", &name), ("resolver_interface", &interface)] {
        // C reads the length of a text without checking that there is one.
        if value.is_empty() {
            return Some(format!("{setting}: unset, and the name resolver \"driver\" needs it"));
        }
    }
    if !is_safe_for_c(&interface, true) {
        return Some(format!("resolver_interface: {interface:?} is no address"));
    }
    let text = context.resolver_bootstrap_neighbor();
    let neighbors = || text.split(',').filter(|neighbor| !neighbor.is_empty());
    if let Some(neighbor) = neighbors().find(|neighbor| !is_safe_for_c(neighbor, false)) {
        return Some(format!("resolver_bootstrap_neighbor: {neighbor:?} is no address"));
    }
    // C allocates one byte for each byte of the text and one for each neighbor, and writes
    // addresses.
    let count = neighbors().count();
    (text.len() + count < count * size_of::<usize>()).then(|| {
        format!("resolver_bootstrap_neighbor: {text:?} is too short for {count} of hostname:port")
    })
}

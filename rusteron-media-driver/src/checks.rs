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
    /// A launch can fail for other reasons: a directory in use, an address in use, socket buffers
    /// that the operating system does not grant, CPUs that the process may not use.
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
        problems.extend(Setting::all().iter().filter_map(|setting| setting.problem(self)));
        problems.extend(vectors(self));
        problems.extend(timeouts(self));
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
    let setting = Setting::all().iter().find(|setting| setting.name == name);
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

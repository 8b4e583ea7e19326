//! Settings to start from.

use std::borrow::Cow;
use std::fs;

use rusteron_core::{Error, ErrorKind, Result, named};

use crate::DriverContext;

named! {
    /// A set of settings to start from, for [`DriverContext::with_preset`] and for the option `--preset` of the
    /// program `media_driver`.
    ///
    /// Settings that a preset does not name keep Aeron's default or the value from the environment.
    ///
    /// [`Throughput`](Self::Throughput) lists its settings itself. The other presets:
    ///
    /// | setting | Aeron's default | `LowLatency` | `Shared` | `Embedded` |
    /// |---|---|---|---|---|
    /// | [`threading_mode`](DriverContext::set_threading_mode) | dedicated | dedicated | shared | shared |
    /// | idle strategy of conductor | backoff | yielding | (not used) | (not used) |
    /// | idle strategies of sender and receiver | backoff | no-op | (not used) | (not used) |
    /// | [`shared_idle_strategy`](DriverContext::set_shared_idle_strategy) | backoff | (not used) | backoff | backoff |
    /// | [`term_buffer_sparse_file`](DriverContext::set_term_buffer_sparse_file) | yes | no | yes | no |
    /// | [`term_buffer_length`](DriverContext::set_term_buffer_length) | 16 MiB | 16 MiB | 16 MiB | 1 MiB |
    /// | [`ipc_term_buffer_length`](DriverContext::set_ipc_term_buffer_length) | 64 MiB | 64 MiB | 64 MiB | 1 MiB |
    /// | [`timer_interval`](DriverContext::set_timer_interval) | 1 s | 1 s | 1 s | 100 ms |
    #[non_exhaustive]
    Preset, "a preset";
    /// For the shortest round trips, on a machine with at least three cores to give away.
    ///
    /// Each agent has a thread. Sender and receiver never sleep and never leave their cores, so no
    /// message waits for a thread to wake up; the two take two whole cores. The conductor, which no
    /// message passes, yields, so that it can share a core. Log buffers are allocated as a whole
    /// when they are added, so no message meets a missing page. Adding then takes longer, and takes
    /// the whole space.
    ///
    /// Streams over a network with long round trips also need longer socket buffers
    /// ([`set_socket_so_rcvbuf`](DriverContext::set_socket_so_rcvbuf),
    /// [`set_socket_so_sndbuf`](DriverContext::set_socket_so_sndbuf)) and a longer
    /// [window](DriverContext::set_rcv_initial_window_length). The operating system limits their lengths
    /// (`net.core.rmem_max` and `net.core.wmem_max` on Linux). So they are not part of the preset.
    ///
    /// Bind the threads to cores that nothing else runs on, with
    /// [`set_sender_cpu_affinity`](DriverContext::set_sender_cpu_affinity) and its like. With fewer cores than
    /// spinning threads this preset is slower than any other.
    LowLatency = "low-latency",
    /// For a driver that shares a machine with other work.
    ///
    /// One thread does everything, and backs off to sleeps of up to 1 ms when idle. It takes next
    /// to no processor time then, and adds up to 1 ms of latency to the first message after a
    /// pause.
    Shared = "shared",
    /// For drivers of a program or a test, of which several may run, and only for a while.
    ///
    /// As [`Shared`](Self::Shared), with small log buffers: many fit on a small `/dev/shm`. A
    /// message may be up to 128 KiB long. The driver checks its timeouts ten times as often. The
    /// timeouts themselves, such as that of clients that have gone, are Aeron's.
    ///
    /// Log buffers are not sparse: each takes 3 MiB when it is added, or is refused with
    /// [`ErrorKind::StorageSpace`](crate::ErrorKind::StorageSpace). A sparse log buffer would end the program with SIGBUS if the file
    /// system becomes full. The space is no more than a stream takes that has passed its third term. For
    /// many streams with few messages, or for long terms, `sparse=true` in a channel or
    /// [`set_term_buffer_sparse_file(true)`](DriverContext::set_term_buffer_sparse_file) saves the space.
    Embedded = "embedded",
    /// For the most bytes a second, over UDP and over IPC.
    ///
    /// Threads and idle strategies stay as they are. Over UDP, the preset lets as many datagrams pass
    /// each system call as Linux takes
    /// ([`set_segmentation_offload`](DriverContext::set_segmentation_offload)), and gives them room. Over
    /// UDP and over IPC, it keeps a stream's log in the processor's caches.
    ///
    /// | setting | default on Linux | `Throughput` | reason |
    /// |---|---|---|---|
    /// | [`network_publication_max_messages_per_send`](DriverContext::set_network_publication_max_messages_per_send) | 16 | 46 | 46 datagrams of 1,408 bytes are the most that fit into one buffer of Linux, 65,507 bytes |
    /// | [`sender_io_vector_capacity`](DriverContext::set_sender_io_vector_capacity) | 16 | 46 | the upper limit of the setting above |
    /// | [`receiver_io_vector_capacity`](DriverContext::set_receiver_io_vector_capacity) | 4 | 16 | datagrams of many lengths arrive as many buffers; 16 buffers take 1 MiB |
    /// | [`socket_so_sndbuf`](DriverContext::set_socket_so_sndbuf) | the system's | 4 MiB | a sender goes on while the network takes what it has sent |
    /// | [`socket_so_rcvbuf`](DriverContext::set_socket_so_rcvbuf) | 128 KiB | 4 MiB | a window of messages fits, with the kernel's own data about each |
    /// | [`rcv_initial_window_length`](DriverContext::set_rcv_initial_window_length) | 128 KiB | 704 KiB | what a sender may send before the receiver answers, many buffers of datagrams |
    /// | [`term_buffer_length`](DriverContext::set_term_buffer_length) | 16 MiB | 2 MiB | a log has three terms: 6 MiB fit into more caches than 48 MiB |
    /// | [`ipc_term_buffer_length`](DriverContext::set_ipc_term_buffer_length) | 64 MiB | 8 MiB | a log has three terms: 24 MiB fit into more caches than 192 MiB |
    ///
    /// A message may be up to 256 KiB long over UDP, and up to 1 MiB over IPC. Over IPC, a publisher may
    /// get 4 MiB ahead of its slowest subscriber. The parameter `term-length` of a channel chooses
    /// other lengths. Over IPC, clients that spin on too few cores need long terms: with 8 MiB they had
    /// half the rate of 64 MiB.
    ///
    /// Linux limits the lengths of socket buffers (`net.core.rmem_max` and `net.core.wmem_max`). The
    /// window is no longer than `net.core.rmem_max`, so that a driver starts with any limit. With
    /// Debian's limit of 208 KiB, most of the gain is lost: raise both limits to 4 MiB. Where the
    /// limit cannot be read, the window is 128 KiB: in other systems than Linux, and in containers on
    /// older kernels.
    ///
    /// The receiving driver needs the preset too. A stream's window is half of its term length at
    /// the most. With `term-length` below 2 MiB, set `rcv-wnd` to a third of it: with half a
    /// term, Aeron's receiver drops some datagrams at the end of a term, and they are sent again. A
    /// subscriber that falls behind has more to catch up.
    Throughput = "throughput",
}

impl Preset {
    /// Returns the settings as environment variables and their values, for drivers that are
    /// programs.
    ///
    /// Aeron's Java driver also takes them, as properties (`aeron.threading.mode` for
    /// `AERON_THREADING_MODE`, but `aeron.socket.so_sndbuf` and `aeron.socket.so_rcvbuf`).
    ///
    /// ```
    /// use rusteron_media_driver::Preset;
    ///
    /// let variables: Vec<_> = Preset::Shared.variables().collect();
    /// assert_eq!(variables[0], ("AERON_THREADING_MODE", "SHARED".into()));
    /// assert_eq!(variables[1], ("AERON_SHARED_IDLE_STRATEGY", "backoff".into()));
    /// ```
    pub fn variables(self) -> impl Iterator<Item = (&'static str, Cow<'static, str>)> {
        let (variables, window): (&[(&str, &str)], _) = match self {
            Self::LowLatency => (LOW_LATENCY, None),
            // `Embedded` is `Shared` with more settings.
            Self::Shared => (&EMBEDDED[..2], None),
            Self::Embedded => (EMBEDDED, None),
            Self::Throughput => (THROUGHPUT, Some(throughput_window())),
        };
        let window = window
            .map(|window| ("AERON_RCV_INITIAL_WINDOW_LENGTH", Cow::Owned(window.to_string())));
        variables.iter().map(|(name, value)| (*name, Cow::Borrowed(*value))).chain(window)
    }
}

const LOW_LATENCY: &[(&str, &str)] = &[
    ("AERON_THREADING_MODE", "DEDICATED"),
    ("AERON_CONDUCTOR_IDLE_STRATEGY", "yield"),
    ("AERON_SENDER_IDLE_STRATEGY", "noop"),
    ("AERON_RECEIVER_IDLE_STRATEGY", "noop"),
    ("AERON_TERM_BUFFER_SPARSE_FILE", "false"),
];

const EMBEDDED: &[(&str, &str)] = &[
    ("AERON_THREADING_MODE", "SHARED"),
    ("AERON_SHARED_IDLE_STRATEGY", "backoff"),
    ("AERON_TERM_BUFFER_SPARSE_FILE", "false"),
    ("AERON_TERM_BUFFER_LENGTH", "1048576"),
    ("AERON_IPC_TERM_BUFFER_LENGTH", "1048576"),
    ("AERON_TIMER_INTERVAL", "100ms"),
];

const THROUGHPUT: &[(&str, &str)] = &[
    ("AERON_SENDER_IO_VECTOR_CAPACITY", "46"),
    ("AERON_RECEIVER_IO_VECTOR_CAPACITY", "16"),
    ("AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND", "46"),
    ("AERON_SOCKET_SO_SNDBUF", "4194304"),
    ("AERON_SOCKET_SO_RCVBUF", "4194304"),
    // `THROUGHPUT_TERM`.
    ("AERON_TERM_BUFFER_LENGTH", "2097152"),
    ("AERON_IPC_TERM_BUFFER_LENGTH", "8388608"),
];

/// Length in bytes of terms over UDP with [`Preset::Throughput`].
const THROUGHPUT_TERM: usize = 2 << 20;

/// Length in bytes of a receiver's window with [`Preset::Throughput`].
///
/// Aeron's receiver drops datagrams that end beyond half a term. A sender does not count the padding at a
/// term's end against the window. Padding is shorter than the longest message, an eighth of a term, with
/// its fragments' headers, 6 KiB with Aeron's MTU.
const THROUGHPUT_WINDOW: usize = THROUGHPUT_TERM / 2 - THROUGHPUT_TERM / 8 - (64 << 10);

/// Returns the window, or less if the system's limit of a receive buffer is lower. Aeron refuses a window that is
/// longer than the buffer.
fn throughput_window() -> usize {
    // Aeron's default, which all systems admit.
    const SMALLEST: usize = 128 << 10;
    let limit = fs::read_to_string("/proc/sys/net/core/rmem_max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok());
    limit.unwrap_or(SMALLEST).min(THROUGHPUT_WINDOW)
}

impl DriverContext {
    /// Creates a context with Aeron's defaults, the values of the `AERON_*` environment variables,
    /// and the settings of a preset. The preset overrides the others.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    ///
    /// ```
    /// use rusteron_media_driver::{DriverContext, MediaDriver, Preset};
    ///
    /// # fn main() -> Result<(), rusteron_media_driver::Error> {
    /// let mut context = DriverContext::with_preset(Preset::Embedded)?;
    /// context.set_mtu_length(8192)?;
    /// let driver = MediaDriver::launch_embedded_with(context)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_preset(preset: Preset) -> Result<Self> {
        let mut context = Self::new()?;
        for (variable, value) in preset.variables() {
            if let Some(setting) = Self::setting(variable) {
                let set = setting.read(&mut context, value.as_ref().as_ref());
                set.map_err(|problem| {
                    let text = format!("{variable}={value}: {problem}");
                    Error::new(ErrorKind::InvalidArgument, text)
                })?;
            }
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_match_contexts() {
        for preset in Preset::ALL {
            let context = DriverContext::with_preset(*preset).expect("a context");
            for (variable, value) in preset.variables() {
                let setting = DriverContext::setting(variable).expect(variable);
                assert_eq!(
                    setting.value(&context),
                    Some(value.into_owned()),
                    "{preset}: {variable}"
                );
            }
            assert_eq!(THROUGHPUT_TERM.to_string(), THROUGHPUT[5].1);
        }
    }
}

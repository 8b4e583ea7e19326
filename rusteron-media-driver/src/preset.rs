//! Settings to start from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rusteron_client::{Error, ErrorKind, IdleStrategyKind, Result};

use crate::{Context, ThreadingMode};

/// A set of settings to start from, for [`Context::with_preset`].
///
/// What a preset does not name keeps Aeron's default or what the environment says.
///
/// | setting | Aeron's default | `LowLatency` | `Shared` | `Embedded` |
/// |---|---|---|---|---|
/// | [`threading_mode`](Context::set_threading_mode) | dedicated | dedicated | shared | shared |
/// | idle strategy of conductor | backoff | yielding | (not used) | (not used) |
/// | idle strategies of sender and receiver | backoff | no-op | (not used) | (not used) |
/// | [`shared_idle_strategy`](Context::set_shared_idle_strategy) | backoff | (not used) | backoff | backoff |
/// | [`term_buffer_sparse_file`](Context::set_term_buffer_sparse_file) | yes | no | yes | yes |
/// | [`term_buffer_length`](Context::set_term_buffer_length) | 16 MiB | 16 MiB | 16 MiB | 1 MiB |
/// | [`ipc_term_buffer_length`](Context::set_ipc_term_buffer_length) | 64 MiB | 64 MiB | 64 MiB | 1 MiB |
/// | [`timer_interval`](Context::set_timer_interval) | 1 s | 1 s | 1 s | 100 ms |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// For the shortest round trips, on a machine with at least three cores to give away.
    ///
    /// Each agent has a thread. Sender and receiver never sleep and never leave their cores, so that
    /// no message waits for a thread to wake up; they take two whole cores. The conductor, which no
    /// message passes, yields, so that it can share a core. Log buffers are allocated as a whole
    /// when they are added, which takes longer and takes their whole space, so that no message meets
    /// a page that is not there.
    ///
    /// Streams over a network with long round trips also want longer socket buffers
    /// ([`set_socket_so_rcvbuf`](Context::set_socket_so_rcvbuf),
    /// [`set_socket_so_sndbuf`](Context::set_socket_so_sndbuf)) and a longer
    /// [window](Context::set_rcv_initial_window_length). How long they may be is up to the operating
    /// system (`net.core.rmem_max` and `net.core.wmem_max` on Linux), which is why they are not part
    /// of the preset.
    ///
    /// Bind the threads to cores that nothing else runs on, with
    /// [`set_sender_cpu_affinity`](Context::set_sender_cpu_affinity) and its like. With fewer cores than
    /// spinning threads this preset is slower than any other.
    LowLatency,
    /// For a driver that shares a machine with other work.
    ///
    /// One thread does everything, and backs off to sleeps of up to 1 ms when there is nothing to do:
    /// next to no processor time when idle, and up to 1 ms of latency for the first message after a
    /// pause.
    Shared,
    /// For drivers that belong to a program or a test: several of them, coming and going.
    ///
    /// As [`Shared`](Self::Shared), with log buffers that are small enough for many on a small
    /// `/dev/shm` (a message may be up to 128 KiB long), and clients and resources that have gone
    /// noticed ten times as fast.
    Embedded,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LowLatency, Self::Shared, Self::Embedded];

    /// Its name in options: `low-latency`, `shared`, `embedded`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "low-latency",
            Self::Shared => "shared",
            Self::Embedded => "embedded",
        }
    }
}

impl Context {
    /// A context with Aeron's defaults, what the `AERON_*` environment variables say, and the
    /// settings of a preset, which win.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    ///
    /// ```
    /// use rusteron_media_driver::{Context, MediaDriver, Preset};
    ///
    /// # fn main() -> Result<(), rusteron_media_driver::Error> {
    /// let mut context = Context::with_preset(Preset::Embedded)?;
    /// context.set_mtu_length(8192)?;
    /// let driver = MediaDriver::launch_embedded_with(context)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_preset(preset: Preset) -> Result<Self> {
        let mut context = Self::new()?;
        match preset {
            Preset::LowLatency => context.prefer_latency()?,
            Preset::Shared => context.share_one_thread()?,
            Preset::Embedded => context
                .share_one_thread()?
                .set_term_buffer_length(1 << 20)?
                .set_ipc_term_buffer_length(1 << 20)?
                .set_timer_interval(Duration::from_millis(100))?,
        };
        Ok(context)
    }

    fn prefer_latency(&mut self) -> Result<&mut Self> {
        self.set_threading_mode(ThreadingMode::Dedicated)?
            .set_conductor_idle_strategy(IdleStrategyKind::Yielding)?
            .set_sender_idle_strategy(IdleStrategyKind::NoOp)?
            .set_receiver_idle_strategy(IdleStrategyKind::NoOp)?
            .set_term_buffer_sparse_file(false)
    }

    fn share_one_thread(&mut self) -> Result<&mut Self> {
        self.set_threading_mode(ThreadingMode::Shared)?
            .set_shared_idle_strategy(IdleStrategyKind::Backoff)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = Error;

    /// The preset of that name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for any other name.
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            let text = format!("{name:?} is not a preset; there are {names}");
            Error::new(ErrorKind::InvalidArgument, text)
        })
    }
}

//! The parts that the programs that show one thing each share: a media driver, and loops with an
//! end.

use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_media_driver::MediaDriver;

use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// After how long without any work a loop gives up.
const DEADLINE: Duration = Duration::from_secs(60);

/// The option of programs that bring their own media driver unless told otherwise.
#[derive(Debug, Clone, Args)]
pub struct DriverOption {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    pub aeron_dir: Option<PathBuf>,
}

/// A media driver for as long as this exists: one that runs already, or an embedded one.
#[derive(Debug)]
pub struct Driver {
    dir: PathBuf,
    /// Dropped at the end, which stops it and deletes its directory.
    _embedded: Option<MediaDriver>,
}

impl Driver {
    /// The driver that the option names, or an embedded one.
    ///
    /// # Errors
    /// [`Failure::Run`] if it cannot be launched.
    pub fn start(option: &DriverOption) -> Result<Self, Failure> {
        if let Some(dir) = &option.aeron_dir {
            return Ok(Self { dir: dir.clone(), _embedded: None });
        }
        let driver = MediaDriver::launch_embedded()
            .map_err(|error| Failure::run("cannot launch the media driver", error))?;
        Ok(Self { dir: driver.aeron_dir().to_owned(), _embedded: Some(driver) })
    }

    /// The directory by which clients find it.
    pub fn aeron_dir(&self) -> &Path {
        &self.dir
    }

    /// A client with default settings.
    ///
    /// # Errors
    /// [`Failure::Run`] if no driver answers.
    pub fn connect(&self) -> Result<Aeron, Failure> {
        let mut context = Context::new()?;
        context.set_dir(self.aeron_dir())?;
        Ok(Aeron::connect(context)?)
    }
}

/// The idle loop of a program. It idles if there was nothing to do, fails after a minute of that,
/// and ends when the user wants to end.
#[derive(Debug)]
pub struct Turns {
    /// `None` if it may last as long as it likes.
    awaited: Option<(&'static str, Instant)>,
    idle: Backoff,
    interrupt: Arc<Interrupt>,
}

impl Turns {
    /// For a loop that waits for something, which the failure then names.
    pub fn awaiting(awaited: &'static str, interrupt: &Arc<Interrupt>) -> Self {
        let awaited = Some((awaited, Instant::now() + DEADLINE));
        Self { awaited, ..Self::until_interrupted(interrupt) }
    }

    /// For a loop that only the user ends, however little there is to do.
    pub fn until_interrupted(interrupt: &Arc<Interrupt>) -> Self {
        Self { awaited: None, idle: Backoff::default(), interrupt: Arc::clone(interrupt) }
    }

    /// Called after every turn of the loop, with how much there was to do in it.
    ///
    /// # Errors
    /// [`Failure::Interrupted`], or [`Failure::Run`] after a minute without work.
    pub fn idle(&mut self, work_count: usize) -> Result<(), Failure> {
        if self.interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        if let Some((awaited, deadline)) = &mut self.awaited {
            if work_count > 0 {
                *deadline = Instant::now() + DEADLINE;
            } else if Instant::now() >= *deadline {
                let seconds = DEADLINE.as_secs();
                return Err(Failure::Run(format!("waited {seconds} s for {awaited} in vain")));
            }
        }
        self.idle.idle(work_count);
        Ok(())
    }
}

/// UDP endpoints of this machine that are free now.
///
/// # Errors
/// [`Failure::Run`] if there are none.
pub fn free_endpoints<const N: usize>() -> Result<[String; N], Failure> {
    let free = || -> io::Result<_> {
        // All at the same time, so that no two are the same.
        let sockets =
            (0..N).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
        let mut endpoints = [const { String::new() }; N];
        for (endpoint, socket) in endpoints.iter_mut().zip(sockets) {
            *endpoint = socket.local_addr()?.to_string();
        }
        Ok(endpoints)
    };
    free().map_err(|error| Failure::run("no free port on 127.0.0.1", error))
}

//! A driver that is killed and started again, and a client that carries on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, ExclusivePublication, Subscription};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::contenders::registration::CHANNEL;
use crate::processes::driver_process::DriverDir;
use crate::processes::program::Program;

/// How long a step may take: longer than Aeron's timeouts.
const DEADLINE: Duration = Duration::from_secs(60);

const STREAM_ID: i32 = 1001;

/// A client and its streams.
struct Session {
    aeron: Aeron,
    publication: ExclusivePublication,
    subscription: Subscription,
}

impl Session {
    fn begin(dir: &Path) -> Result<Self, Failure> {
        let mut context = Context::new()?;
        context.set_dir(dir)?;
        let aeron = Aeron::connect(context)?;
        let subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
        let publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
        let mut session = Self { aeron, publication, subscription };
        session.until(|session| {
            let _ = session.publication.offer(b"message");
            session.subscription.poll(|_, _| {}, 1).is_ok_and(|count| count > 0)
        })?;
        Ok(session)
    }

    fn until(&mut self, mut condition: impl FnMut(&mut Self) -> bool) -> Result<(), Failure> {
        let start = Instant::now();
        while !condition(self) {
            if start.elapsed() > DEADLINE {
                return Err(Failure::Run("the restart takes too long".to_owned()));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Kills a driver `count` times, and starts the next at once in the same directory. Returns the milliseconds from
/// each kill to the first message of the client that carries on.
///
/// # Errors
/// [`Failure::Interrupted`] if that is requested; [`Failure::Run`] if anything fails.
pub fn measure(
    media_driver: &Path,
    count: u32,
    interrupt: &Interrupt,
) -> Result<Vec<f64>, Failure> {
    let dir = DriverDir::new(0);
    let start = || {
        let mut command = Command::new(media_driver);
        command.args(["--threading-mode", "shared", "--dir"]).arg(dir.path());
        Program::start("media_driver".to_owned(), command, DEADLINE)
    };
    let mut driver = start()?;
    let mut session = Session::begin(dir.path())?;
    let mut times = Vec::new();
    for _ in 0..count {
        if interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        let killed = Instant::now();
        // Dropping it sends SIGKILL, and waits.
        drop(driver);
        driver = start()?;
        session.until(|session| session.aeron.is_closed())?;
        session = Session::begin(dir.path())?;
        times.push(killed.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

//! Clients that come and go, and one run of each kind.

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_client::{Aeron, Context, ExclusivePublication, Subscription};
use rusteron_sys as sys;

use crate::command_line::failure::{self, Failure};
use crate::command_line::interrupt::Interrupt;
use crate::processes::java::{self, Java};

/// The timed steps, in the order of a repetition. The last step but one is timed from the beginning of the
/// step before.
pub const STEPS: [&str; 5] =
    ["connect", "add publication", "add subscription", "until its image", "close"];

/// How long the steps of a repetition take, in microseconds.
pub type Times = [f64; STEPS.len()];

/// Short terms, so that it is not the allocation of files that is measured.
pub const CHANNEL: &str = "aeron:ipc?term-length=64k";

/// How many milliseconds a client idles before a step: one of these after the other.
pub const PAUSES: Range<u32> = 0..20;

/// How long an image, or a line of a Java program, may be missing: longer than a client waits for its
/// driver.
const DEADLINE: Duration = Duration::from_secs(15);

/// Kinds of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// The Rust API: calls that block
    Rust,
    /// C's functions, polled and yielding meanwhile
    C,
    /// Java: calls that block
    Java,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Java => "Java",
        })
    }
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The driver's directory.
    pub dir: &'a Path,
    /// Java, if it is there and wanted.
    pub java: Option<&'a Java>,
    /// How long a Java program runs before it is measured.
    pub java_warmup: Duration,
    /// How many clients come and go in a run.
    pub repetitions: u32,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// One run: the times of each repetition. Each has a stream of its own, from `first_stream_id` on.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] if that is requested; [`Failure::Run`] if anything fails.
    pub fn measure(&self, client: Client, first_stream_id: i32) -> Result<Vec<Times>, Failure> {
        match (client, self.java) {
            (Client::Rust, _) => self.repeat::<RustClient>(first_stream_id),
            (Client::C, _) => self.repeat::<CClient>(first_stream_id),
            (Client::Java, Some(java)) => self.measure_java(java, first_stream_id),
            (Client::Java, None) => Ok(Vec::new()),
        }
    }

    fn repeat<C: Registering>(&self, first_stream_id: i32) -> Result<Vec<Times>, Failure> {
        (0..self.repetitions)
            .zip(first_stream_id..)
            .map(|(repetition, stream_id)| {
                if self.interrupt.is_requested() {
                    return Err(Failure::Interrupted);
                }
                come_and_go::<C>(self.dir, stream_id, repetition)
            })
            .collect()
    }

    /// A run of `java/Registrations.java` on our driver.
    fn measure_java(&self, java: &Java, first_stream_id: i32) -> Result<Vec<Times>, Failure> {
        let arguments = [
            self.dir.display().to_string(),
            CHANNEL.to_owned(),
            first_stream_id.to_string(),
            self.java_warmup.as_nanos().to_string(),
            self.repetitions.to_string(),
        ];
        let timeout = DEADLINE + self.java_warmup;
        let mut program = java.start("Registrations.java", &[], &arguments, timeout)?;
        let mut times = Vec::new();
        while let Some(line) = program.line(self.interrupt)? {
            if line == "done" {
                program.finish(self.interrupt)?;
                return Ok(times);
            }
            times.push(parse_times(&line)?);
        }
        Err(Failure::Interrupted)
    }
}

/// The times in a line such as `times 130000 25000000 25000000 32000000 10000000`.
fn parse_times(line: &str) -> Result<Times, Failure> {
    let mut fields = line.strip_prefix("times ").into_iter().flat_map(|line| line.split(' '));
    let mut times = Times::default();
    for time in &mut times {
        let nanos: u64 = java::number(line, fields.next())?;
        *time = micros(Duration::from_nanos(nanos));
    }
    Ok(times)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// How long to idle before a step: in so many repetitions as there are pauses, each step has each of them.
fn pause_before(step: u32, repetition: u32) -> Duration {
    // Seven apart from one step of a repetition to the next.
    let pause = (repetition + 7 * step) % PAUSES.len() as u32;
    Duration::from_millis((PAUSES.start + pause).into())
}

/// One repetition, as `java/Registrations.java` does it.
fn come_and_go<C: Registering>(
    dir: &Path,
    stream_id: i32,
    repetition: u32,
) -> Result<Times, Failure> {
    let start = Instant::now();
    let mut client = C::connect(dir)?;
    let connected = start.elapsed();

    thread::sleep(pause_before(1, repetition));
    let start = Instant::now();
    client.add_publication(stream_id)?;
    let has_publication = start.elapsed();

    thread::sleep(pause_before(2, repetition));
    let start = Instant::now();
    client.add_subscription(stream_id)?;
    let has_subscription = start.elapsed();
    await_true("the image", || Ok(client.has_image()))?;
    let has_image = start.elapsed();

    thread::sleep(pause_before(3, repetition));
    let start = Instant::now();
    drop(client);
    let closed = start.elapsed();

    Ok([connected, has_publication, has_subscription, has_image, closed].map(micros))
}

/// A client with a publication and a subscription; when dropped, it closes these and then itself.
trait Registering: Sized {
    fn connect(dir: &Path) -> Result<Self, Failure>;
    fn add_publication(&mut self, stream_id: i32) -> Result<(), Failure>;
    fn add_subscription(&mut self, stream_id: i32) -> Result<(), Failure>;
    fn has_image(&self) -> bool;
}

/// A client of the Rust API.
struct RustClient {
    // Dropped in this order.
    publication: Option<ExclusivePublication>,
    subscription: Option<Subscription>,
    aeron: Aeron,
}

impl Registering for RustClient {
    fn connect(dir: &Path) -> Result<Self, Failure> {
        let mut context = Context::new()?;
        context.set_dir(dir)?;
        Ok(Self { publication: None, subscription: None, aeron: Aeron::connect(context)? })
    }

    fn add_publication(&mut self, stream_id: i32) -> Result<(), Failure> {
        self.publication = Some(self.aeron.add_exclusive_publication(CHANNEL, stream_id)?);
        Ok(())
    }

    fn add_subscription(&mut self, stream_id: i32) -> Result<(), Failure> {
        self.subscription = Some(self.aeron.add_subscription(CHANNEL, stream_id)?);
        Ok(())
    }

    fn has_image(&self) -> bool {
        self.subscription.as_ref().is_some_and(Subscription::is_connected)
    }
}

/// A client of the C functions, used as in a C program. A null pointer stands for a resource that is not added
/// yet.
struct CClient {
    publication: *mut sys::aeron_exclusive_publication_t,
    subscription: *mut sys::aeron_subscription_t,
    client: *mut sys::aeron_t,
    context: *mut sys::aeron_context_t,
}

impl Registering for CClient {
    fn connect(dir: &Path) -> Result<Self, Failure> {
        let dir = c_string(&dir.display().to_string())?;
        let mut this = Self {
            publication: ptr::null_mut(),
            subscription: ptr::null_mut(),
            client: ptr::null_mut(),
            context: ptr::null_mut(),
        };
        // SAFETY: each call has what the one before has made; the string, which C copies, ends in NUL.
        unsafe {
            check("aeron_context_init", sys::aeron_context_init(&mut this.context))?;
            let returned = sys::aeron_context_set_dir(this.context, dir.as_ptr());
            check("aeron_context_set_dir", returned)?;
            check("aeron_init", sys::aeron_init(&mut this.client, this.context)).inspect_err(
                // Its mapping is gone, which the context does not know.
                |_| sys::rusteron_context_forget_cnc(this.context),
            )?;
            check("aeron_start", sys::aeron_start(this.client))?;
        }
        Ok(this)
    }

    fn add_publication(&mut self, stream_id: i32) -> Result<(), Failure> {
        let channel = c_string(CHANNEL)?;
        let mut adding = ptr::null_mut();
        // SAFETY: the client is live; C copies the channel, which ends in NUL.
        let returned = unsafe {
            sys::aeron_async_add_exclusive_publication(
                &mut adding,
                self.client,
                channel.as_ptr(),
                stream_id,
            )
        };
        check("aeron_async_add_exclusive_publication", returned)?;
        await_true("C's publication", || {
            // SAFETY: `adding` is valid until there is an outcome, and then this is not called again.
            let returned = unsafe {
                sys::aeron_async_add_exclusive_publication_poll(&mut self.publication, adding)
            };
            check("aeron_async_add_exclusive_publication_poll", returned)?;
            Ok(returned > 0)
        })
    }

    fn add_subscription(&mut self, stream_id: i32) -> Result<(), Failure> {
        let channel = c_string(CHANNEL)?;
        let mut adding = ptr::null_mut();
        // SAFETY: the client is live; C copies the channel, which ends in NUL; there are no handlers.
        let returned = unsafe {
            sys::aeron_async_add_subscription(
                &mut adding,
                self.client,
                channel.as_ptr(),
                stream_id,
                None,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
            )
        };
        check("aeron_async_add_subscription", returned)?;
        await_true("C's subscription", || {
            // SAFETY: as for the publication.
            let returned =
                unsafe { sys::aeron_async_add_subscription_poll(&mut self.subscription, adding) };
            check("aeron_async_add_subscription_poll", returned)?;
            Ok(returned > 0)
        })
    }

    fn has_image(&self) -> bool {
        // SAFETY: a subscription that there is lives as long as its client.
        !self.subscription.is_null()
            && unsafe { sys::aeron_subscription_is_connected(self.subscription) }
    }
}

impl Drop for CClient {
    fn drop(&mut self) {
        let is_closed = |function, returned| {
            check(function, returned).inspect_err(|failure| failure::warn(failure)).is_ok()
        };
        // SAFETY: what is not null is live, and nobody else's: streams are closed by their client's
        // conductor, the client ends that, and only then the context goes, which it uses.
        unsafe {
            if !self.publication.is_null() {
                let returned =
                    sys::aeron_exclusive_publication_close(self.publication, None, ptr::null_mut());
                is_closed("aeron_exclusive_publication_close", returned);
            }
            if !self.subscription.is_null() {
                let returned =
                    sys::aeron_subscription_close(self.subscription, None, ptr::null_mut());
                is_closed("aeron_subscription_close", returned);
            }
            if self.client.is_null() || is_closed("aeron_close", sys::aeron_close(self.client)) {
                is_closed("aeron_context_close", sys::aeron_context_close(self.context));
            }
        }
    }
}

/// Asks again and again, yielding meanwhile.
fn await_true(
    awaited: &str,
    mut is_true: impl FnMut() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let start = Instant::now();
    while !is_true()? {
        if start.elapsed() >= DEADLINE {
            return Err(Failure::run(awaited, "it does not come"));
        }
        thread::yield_now();
    }
    Ok(())
}

/// Makes a failure of what one of C's functions returns, if it is one.
fn check(function: &str, returned: c_int) -> Result<(), Failure> {
    if returned >= 0 {
        return Ok(());
    }
    // SAFETY: the text is this thread's, and read before another call of this thread.
    let text = unsafe { CStr::from_ptr(sys::aeron_errmsg()) };
    Err(Failure::run(function, text.to_string_lossy()))
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|error| Failure::run(format_args!("{text:?}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_every_pause() {
        for step in 1..=3 {
            let mut pauses: Vec<Duration> =
                (20..40).map(|repetition| pause_before(step, repetition)).collect();
            pauses.sort();
            let expected: Vec<Duration> = (0..20).map(Duration::from_millis).collect();
            assert_eq!(pauses, expected);
        }
    }

    #[test]
    fn javas_line_is_understood() {
        assert_eq!(parse_times("times 1000 2000 3000 4500 0"), Ok([1.0, 2.0, 3.0, 4.5, 0.0]));
        for line in ["", "times 1 2 3 4", "times 1 2 3 4 x", "1 2 3 4 5"] {
            assert!(parse_times(line).is_err(), "{line}");
        }
    }

    #[test]
    fn cs_failures_have_its_text() {
        let dir = Path::new("a\0b");
        assert!(matches!(CClient::connect(dir), Err(Failure::Run(text)) if text.contains("nul")));

        let dir = tempfile::tempdir().expect("a directory");
        let mut cnc = vec![0; 1 << 16];
        // A version that there is not.
        cnc[..4].copy_from_slice(&(99_i32 << 16).to_ne_bytes());
        std::fs::write(dir.path().join("cnc.dat"), cnc).expect("a file");
        let failure = CClient::connect(dir.path()).err().expect("a failure").to_string();
        assert!(failure.starts_with("aeron_init: "), "{failure}");

        // SAFETY: C refuses null.
        let returned = unsafe { sys::aeron_context_set_dir(ptr::null_mut(), ptr::null()) };
        let failure = check("aeron_context_set_dir", returned).expect_err("a failure");
        assert!(failure.to_string().starts_with("aeron_context_set_dir: "), "{failure}");
        assert!(failure.to_string().len() > "aeron_context_set_dir: ".len(), "{failure}");
    }
}

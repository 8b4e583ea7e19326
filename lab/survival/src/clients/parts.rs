//! The processes that the supervisor starts.

mod client;
mod driver;
mod forger;
mod hog;
mod publisher;
mod subscriber;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::panic;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;
use rusteron_test_support::ForkedChild;

use crate::clients::options::{Part, PartOptions};
use crate::clients::words::{Notice, Order, from_line, to_line};
use crate::process::follow;

/// Plays a part until the supervisor asks for its end.
pub(crate) fn play(part: Part, options: &PartOptions) -> Result<(), Failure> {
    follow(options.supervisor)?;
    // A caught panic, such as a panic of a callback, is a crash all the same.
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        print(info);
        process::abort();
    }));
    let orders = Orders::read();
    match part {
        Part::Driver => driver::play(options, &orders),
        Part::Publisher => publisher::play(options, &orders),
        Part::Subscriber => subscriber::play(options, &orders),
        Part::Forger => forger::play(options, &orders),
        Part::Hog => hog::play(options, &orders),
    }
}

/// The supervisor's orders that were not looked at yet.
struct Orders(Receiver<Order>);

impl Orders {
    fn read() -> Self {
        let (sender, orders) = mpsc::channel();
        thread::spawn(move || {
            let lines = io::stdin().lock().lines().map_while(Result::ok);
            for order in lines.filter_map(|line| from_line(&line)) {
                if sender.send(order).is_err() {
                    return;
                }
            }
        });
        Self(orders)
    }

    fn next(&self) -> Option<Order> {
        match self.0.try_recv() {
            Ok(order) => Some(order),
            Err(TryRecvError::Empty) => None,
            // The supervisor has closed the stream.
            Err(TryRecvError::Disconnected) => Some(Order::End),
        }
    }

    fn wait(&self, timeout: Duration) -> Option<Order> {
        match self.0.recv_timeout(timeout) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Order::End),
        }
    }
}

/// Tells the supervisor something.
fn say(notice: &Notice) {
    // Without a supervisor this process is about to die.
    let _ = writeln!(io::stdout(), "{}", to_line(notice));
}

/// Tells the supervisor that something is wrong.
fn accuse(name: &str, count: u64, text: impl fmt::Display) {
    say(&Notice::Fault(name.to_owned(), count, text.to_string()));
}

/// Forks a child. Returns `true` in the child, which then says nothing more, and must end with success.
fn fork() -> bool {
    /// How long a child may take to drop its handles and to end.
    const DEADLINE: Duration = Duration::from_secs(10);
    match ForkedChild::fork() {
        Ok(None) => {
            // The supervisor takes what this process says for its parent's notices.
            let null = File::options().write(true).open("/dev/null");
            if null.is_ok_and(|null| rustix::stdio::dup2_stdout(null).is_ok()) {
                return true;
            }
            process::abort();
        }
        Ok(Some(child)) => {
            thread::spawn(move || {
                if let Err(end) = child.await_success(Instant::now() + DEADLINE) {
                    accuse("crashed", 1, format_args!("a forked child: {end}"));
                }
            });
        }
        // A process without memory or descriptors for it. Other faults are in force as well.
        Err(_) => {}
    }
    false
}

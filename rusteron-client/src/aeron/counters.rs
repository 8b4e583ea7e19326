//! The counters that a client adds, reads and is told of.

use rusteron_core::cnc::CountersReader;
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::Result;
use rusteron_core::ffi::callback;
use rusteron_core::ffi::handlers::Handler;
use rusteron_sys as sys;

use crate::aeron::Aeron;
use crate::client::{Counter, Registration, counter};
#[cfg(doc)]
use crate::context::Context;

impl Aeron {
    /// Adds a counter, and waits for the media driver's confirmation.
    ///
    /// The type id says what kind of counter it is; it is not negative, and type ids below 1000 are
    /// Aeron's own. The key has at most [`Counter::MAX_KEY_LENGTH`] bytes and tells programs what the
    /// counter counts. The label has at most [`Counter::MAX_LABEL_LENGTH`] bytes and tells people. Java's
    /// tools read labels as US-ASCII. Blocks as [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the type id is negative, or key or label are too long;
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - others that the media driver reports, with its text, such as no space for another counter.
    ///
    /// Corresponds to `aeron_async_add_counter` and `aeron_async_add_counter_poll`.
    #[doc(alias("aeron_async_add_counter", "aeron_async_add_counter_poll"))]
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter> {
        callback::forbid_blocking("add_counter", Some("async_add_counter"))?;
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// Starts adding a counter. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the type id is negative, or key or label are too long;
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback of a client without such a thread;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client.
    ///
    /// Corresponds to `aeron_async_add_counter`.
    #[doc(alias = "aeron_async_add_counter")]
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Registration<Counter>> {
        counter::begin(&self.client, type_id, key, label, None)
    }

    /// Adds a static counter, or finds the existing one with the same type and registration id.
    /// Waits for the media driver's confirmation.
    ///
    /// Clients share a static counter: all handles refer to the same value. The first request
    /// decides the key and the label. The counter lives as long as the driver. Blocks as
    /// [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// As for [`add_counter`](Self::add_counter); the media driver also reports a counter with the
    /// same type and registration id that is not static.
    ///
    /// Corresponds to `aeron_async_add_static_counter` and `aeron_async_add_counter_poll`.
    #[doc(alias("aeron_async_add_static_counter", "aeron_async_add_counter_poll"))]
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter> {
        callback::forbid_blocking("add_static_counter", Some("async_add_static_counter"))?;
        self.async_add_static_counter(type_id, key, label, registration_id)?.wait()
    }

    /// Starts adding or finding a static counter. Poll or await the result.
    ///
    /// Dropping the [`Registration`] does not cancel the counter: the driver creates it once it is
    /// requested.
    ///
    /// # Errors
    /// As for [`async_add_counter`](Self::async_add_counter).
    ///
    /// Corresponds to `aeron_async_add_static_counter`.
    #[doc(alias = "aeron_async_add_static_counter")]
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Registration<Counter>> {
        counter::begin(&self.client, type_id, key, label, Some(registration_id))
    }

    /// Returns a reader of the counters of the media driver and of all its clients. The reader
    /// borrows this handle.
    ///
    /// ```
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # use rusteron_client::SystemCounter;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// let counters = aeron.counters_reader();
    /// println!("{:?} bytes sent", SystemCounter::BytesSent.read(&counters));
    /// for counter in counters.iter() {
    ///     println!("{}: {}", counter.label, counter.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `aeron_counters_reader`.
    #[doc(alias = "aeron_counters_reader")]
    pub fn counters_reader(&self) -> CountersReader<'_> {
        // SAFETY: the reader is a part of the C client, which lives as long as `self`. The mapping
        // that it reads goes with the context and lives as long, too.
        unsafe { CountersReader::from_raw(sys::aeron_counters_reader(self.client.as_ptr())) }
    }

    /// Adds a handler that is called when a client of the driver, this one or another, has added a
    /// counter that is not static. Dropping the returned [`Handler`] removes the handler.
    ///
    /// The handler's arguments and limits are those of [`Context::set_on_available_counter`].
    /// Neither adding nor removing waits for the conductor; both can be done in callbacks.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// let (sender, added) = mpsc::channel();
    /// let _handler = aeron.add_available_counter_handler(move |_counters, registration_id, _id| {
    ///     let _ = sender.send(registration_id);
    /// });
    /// let counter = aeron.add_counter(1001, b"key", "requests of my service")?;
    /// assert!(added.iter().any(|registration_id| registration_id == counter.registration_id()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The handler runs on another thread, so everything that it owns has to be `Send`. This does
    /// not compile:
    ///
    /// ```compile_fail,E0277
    /// # use rusteron_client::{Aeron, Handler};
    /// fn count(aeron: &Aeron, count: std::rc::Rc<std::cell::Cell<u32>>) -> Handler {
    ///     aeron.add_available_counter_handler(move |_, _, _| count.set(count.get() + 1))
    /// }
    /// ```
    ///
    /// Corresponds to `aeron_add_available_counter_handler` and
    /// `aeron_remove_available_counter_handler`.
    #[doc(alias(
        "aeron_add_available_counter_handler",
        "aeron_remove_available_counter_handler",
        "AvailableCounterHandler",
        "removeAvailableCounterHandler"
    ))]
    pub fn add_available_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Handler {
        self.add_handler(&self.context().available_counter_handlers, Box::new(handler))
    }

    /// Adds a handler that is called when a counter that is not static is removed. Dropping the
    /// returned [`Handler`] removes the handler.
    ///
    /// The handler's arguments and limits are those of [`Context::set_on_unavailable_counter`].
    /// Neither adding nor removing waits for the conductor; both can be done in callbacks.
    ///
    /// Corresponds to `aeron_add_unavailable_counter_handler` and
    /// `aeron_remove_unavailable_counter_handler`.
    #[doc(alias(
        "aeron_add_unavailable_counter_handler",
        "aeron_remove_unavailable_counter_handler",
        "UnavailableCounterHandler",
        "removeUnavailableCounterHandler"
    ))]
    pub fn add_unavailable_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Handler {
        self.add_handler(&self.context().unavailable_counter_handlers, Box::new(handler))
    }
}

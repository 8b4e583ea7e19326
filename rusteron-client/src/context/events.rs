//! The events of a client: the handlers of its context, and the values that they are given.

use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rusteron_core::cnc::CountersReader;
use rusteron_core::error::{Error, Result};
use rusteron_core::ffi::handlers::Handlers;
use rusteron_core::ffi::{self, Fallible, Retained, callback};
use rusteron_sys as sys;

use crate::context::Context;

/// A publication or subscription that the media driver has added for this client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewResource {
    /// The channel, as it was given when the resource was added.
    pub channel: String,
    /// The stream id within the channel.
    pub stream_id: i32,
    /// The session id of a publication. `None` for a subscription.
    pub session_id: Option<i32>,
    /// The registration id of the resource.
    pub registration_id: i64,
}

/// An error that a receiver reported against a publication of this client, such as a rejected
/// image.
#[doc(alias = "PublicationErrorFrame")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicationError {
    /// The registration id of the publication.
    pub registration_id: i64,
    /// The registration id of the destination that the receiver is behind. Only for a publication
    /// with destinations.
    pub destination_registration_id: i64,
    /// The session id of the publication.
    pub session_id: i32,
    /// The stream id of the publication.
    pub stream_id: i32,
    /// The id of the receiver that sent the report.
    pub receiver_id: i64,
    /// The group tag of the receiver. `None` if the receiver has none.
    pub group_tag: Option<i64>,
    /// The address that the report came from. `None` if that is not known.
    pub source: Option<SocketAddr>,
    /// Aeron's error number.
    pub code: i32,
    /// The receiver's message.
    pub message: String,
}

type OnError = dyn Fn(&Error) + Send + Sync;
type OnAdded = dyn FnMut(&NewResource) + Send;
/// A handler of errors against publications.
pub(crate) type OnPublicationError = dyn FnMut(&PublicationError) + Send;
type OnStart = dyn FnMut(&str) + Send;
/// A handler that is called when the client closes.
pub(crate) type OnClose = dyn FnMut() + Send;
/// A handler of counters that come or go. It gets the registration id and the counter id.
pub(crate) type OnCounter = dyn FnMut(&CountersReader<'_>, i64, i32) + Send;

/// The handlers that a context was given. They are dropped with the context, after the client.
///
/// Each handler is called on one thread at a time: the conductor's thread, or the thread that does
/// the conductor's work. The exception is the error handler, which is therefore `Sync`.
#[derive(Default)]
pub(crate) struct ContextHandlers {
    error: Option<Retained<OnError>>,
    new_publication: Option<Retained<OnAdded>>,
    new_exclusive_publication: Option<Retained<OnAdded>>,
    new_subscription: Option<Retained<OnAdded>>,
    start: Option<Retained<OnStart>>,
}

/// Gives C a handler, and retains the closure. The replaced closure is freed after C has forgotten
/// it.
macro_rules! install {
    ($context:expr, $field:ident: $closure:ty, $handler:expr, $set:ident, $callback:expr) => {{
        let retained: Retained<$closure> = Retained::new(Box::new($handler));
        // SAFETY: the context is live and not yet used by a client; `clientd` is the address of a
        // closure that the context owns until it is freed, and of the type the callback expects.
        let set = unsafe { sys::$set($context.as_ptr(), Some($callback), retained.clientd()) };
        // If C had refused the handler, C would still have the previous one.
        set.into_result()?;
        $context.handlers.$field = Some(retained);
        Ok($context)
    }};
}

impl Context {
    /// Sets the handler of errors that happen in the background, where no caller can receive them.
    /// Examples: a driver that dies, a client that is timed out, a command that cannot be sent.
    ///
    /// An image that cannot be mapped, for example because the process has no descriptors left, is
    /// reported here and nowhere else. The subscription stays without that image. The image's
    /// publisher waits for the subscriber until the subscription or the client is dropped. Drop
    /// them and make them anew.
    ///
    /// The handler runs on the client's conductor thread and delays its work. Calls in the handler
    /// that would wait for that thread return
    /// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). Two threads can
    /// call the handler at once. A panic in the handler is logged. The handler lives as long as the
    /// client. If the handler owns a handle of the client, it keeps the client open. Without a
    /// handler, errors are logged.
    ///
    /// ```
    /// # use rusteron_client::Context;
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> Result<(), rusteron_client::Error> {
    /// let (sender, _errors) = mpsc::channel();
    /// let mut context = Context::new()?;
    /// context.set_error_handler(move |error| {
    ///     let _ = sender.send(error.to_string());
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The handler must own its captures, and these must be `Send` and `Sync`. This does not
    /// compile:
    ///
    /// ```compile_fail,E0277
    /// # use rusteron_client::Context;
    /// fn count(context: &mut Context, errors: std::cell::Cell<u32>) {
    ///     let _ = context.set_error_handler(move |_| errors.set(errors.get() + 1));
    /// }
    /// ```
    ///
    /// # Errors
    /// None that a valid context can cause. The errors are C's.
    ///
    /// Corresponds to `aeron_context_set_error_handler`.
    #[doc(alias("aeron_context_set_error_handler", "ErrorHandler"))]
    pub fn set_error_handler(
        &mut self,
        handler: impl Fn(&Error) + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        let close_state = Arc::clone(&self.close_state);
        // Also notes the cause, and how long the driver was silent, if this error has closed the client.
        let handler = move |error: &Error| handler(&close_state.explain(error.clone()));
        install!(self, error: OnError, handler, aeron_context_set_error_handler, on_error)
    }

    /// Sets the handler that is called when the media driver has added a shared publication for
    /// this client.
    ///
    /// The handler runs on the conductor thread, as described at
    /// [`set_error_handler`](Self::set_error_handler), on one thread at a time.
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_new_publication`.
    #[doc(alias = "aeron_context_set_on_new_publication")]
    pub fn set_on_new_publication(
        &mut self,
        handler: impl FnMut(&NewResource) + Send + 'static,
    ) -> Result<&mut Self> {
        install!(
            self,
            new_publication: OnAdded,
            handler,
            aeron_context_set_on_new_publication,
            on_new_publication
        )
    }

    /// Sets the handler that is called when the media driver has added an exclusive publication for
    /// this client.
    ///
    /// The handler runs like that of [`set_on_new_publication`](Self::set_on_new_publication).
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_new_exclusive_publication`.
    #[doc(alias = "aeron_context_set_on_new_exclusive_publication")]
    pub fn set_on_new_exclusive_publication(
        &mut self,
        handler: impl FnMut(&NewResource) + Send + 'static,
    ) -> Result<&mut Self> {
        install!(
            self,
            new_exclusive_publication: OnAdded,
            handler,
            aeron_context_set_on_new_exclusive_publication,
            on_new_publication
        )
    }

    /// Sets the handler that is called when the media driver has added a subscription for this
    /// client.
    ///
    /// The handler runs like that of [`set_on_new_publication`](Self::set_on_new_publication).
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_new_subscription`.
    #[doc(alias = "aeron_context_set_on_new_subscription")]
    pub fn set_on_new_subscription(
        &mut self,
        handler: impl FnMut(&NewResource) + Send + 'static,
    ) -> Result<&mut Self> {
        install!(
            self,
            new_subscription: OnAdded,
            handler,
            aeron_context_set_on_new_subscription,
            on_new_subscription
        )
    }

    /// Sets the handler that is called when a receiver reports an error against a publication of
    /// this client. Example: a subscriber rejects its image.
    ///
    /// The handler runs like that of [`set_on_new_publication`](Self::set_on_new_publication).
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_publication_error_frame_handler`.
    #[doc(alias(
        "aeron_context_set_publication_error_frame_handler",
        "PublicationErrorFrameHandler"
    ))]
    pub fn set_publication_error_handler(
        &mut self,
        handler: impl FnMut(&PublicationError) + Send + 'static,
    ) -> Result<&mut Self> {
        self.on_publication_error = None;
        self.on_publication_error = Some(self.publication_error_handlers.add(Box::new(handler)));
        Ok(self)
    }

    /// Sets the handler that is called once on the conductor's thread before its first work, with
    /// the role's name. Use it to bind the thread to a processor or to name the thread.
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_agent_on_start_function`, which C declares without defining it.
    #[doc(alias = "aeron_context_set_agent_on_start_function")]
    pub fn set_agent_on_start(
        &mut self,
        handler: impl FnMut(&str) + Send + 'static,
    ) -> Result<&mut Self> {
        install!(
            self,
            start: OnStart,
            handler,
            rusteron_context_set_agent_on_start,
            on_start
        )
    }

    /// Sets the handler that is called once while the client closes. It replaces the previous
    /// handler.
    ///
    /// The handler runs on the thread that drops the client's last handle. If that happens in a
    /// callback, it runs on a thread of the client. A client that a fatal error has ended also
    /// closes when its last handle is dropped. The error itself goes to the error handler.
    /// [`Aeron::add_close_handler`](crate::Aeron::add_close_handler) adds handlers that can be
    /// removed.
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_close_client`.
    #[doc(alias("aeron_context_set_on_close_client", "closeHandler"))]
    pub fn set_on_close(&mut self, handler: impl FnMut() + Send + 'static) -> Result<&mut Self> {
        self.on_close = None;
        self.on_close = Some(self.close_handlers.add(Box::new(handler)));
        Ok(self)
    }

    /// Sets the handler that is called when any client of the driver, also this one, has added a
    /// counter. Static counters are excluded. The handler replaces the previous one.
    ///
    /// The handler gets a reader, the registration id and the counter id. Drivers also announce the
    /// heartbeat counter of each client in this way, with the client id as registration id.
    ///
    /// The handler runs on the conductor thread, as described at
    /// [`set_error_handler`](Self::set_error_handler). It runs on one thread at a time, and lives
    /// as long as the client.
    /// [`Aeron::add_available_counter_handler`](crate::Aeron::add_available_counter_handler) adds
    /// handlers that can be removed.
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_available_counter`.
    #[doc(alias = "aeron_context_set_on_available_counter")]
    pub fn set_on_available_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Result<&mut Self> {
        self.on_available_counter = None;
        self.on_available_counter = Some(self.available_counter_handlers.add(Box::new(handler)));
        Ok(self)
    }

    /// Sets the handler that is called when a counter goes, because its client has dropped it or is
    /// gone. Static counters are excluded. The handler replaces the previous one.
    ///
    /// The handler gets a reader, the registration id and the counter id. The counter can already
    /// be freed. Everything else is as with
    /// [`set_on_available_counter`](Self::set_on_available_counter).
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_unavailable_counter`.
    #[doc(alias = "aeron_context_set_on_unavailable_counter")]
    pub fn set_on_unavailable_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Result<&mut Self> {
        self.on_unavailable_counter = None;
        self.on_unavailable_counter =
            Some(self.unavailable_counter_handlers.add(Box::new(handler)));
        Ok(self)
    }

    /// Gives C the lists of handlers. The client that will be made with this context calls them.
    pub(super) fn install_handlers(&self) -> Result<()> {
        let (context, available) = (self.as_ptr(), address(&self.available_counter_handlers));
        let unavailable = address(&self.unavailable_counter_handlers);
        // SAFETY: the context is live, no client uses it yet, and it owns the lists. They outlive its
        // client, and have the types that the callbacks expect.
        unsafe {
            sys::aeron_context_set_on_available_counter(context, Some(on_counter), available)
                .into_result()?;
            sys::aeron_context_set_on_unavailable_counter(context, Some(on_counter), unavailable)
                .into_result()?;
            let close = address(&self.close_handlers);
            sys::aeron_context_set_on_close_client(context, Some(on_close), close).into_result()?;
            let errors = address(&self.publication_error_handlers);
            let handler = Some(on_publication_error as unsafe extern "C" fn(_, _));
            sys::aeron_context_set_publication_error_frame_handler(context, handler, errors)
                .into_result()?;
        }
        Ok(())
    }
}

fn address<F: ?Sized>(handlers: &Arc<Handlers<F>>) -> *mut c_void {
    Arc::as_ptr(handlers).cast_mut().cast()
}

/// Logs an error that no handler receives.
pub(crate) fn log_error(error: &Error) {
    log::error!("Aeron client: {error}");
}

unsafe extern "C" fn on_error(clientd: *mut c_void, code: c_int, message: *const c_char) {
    // SAFETY: `clientd` is what `install!` gave to C, with this type.
    let handler = unsafe { Retained::<OnError>::shared(clientd) };
    // SAFETY: C passes a terminated text that lives for the call.
    let message = unsafe { ffi::lossy(message) }.trim_end().to_owned();
    callback::run("error handler", || handler(&Error::from_callback(code, message)));
}

unsafe extern "C" fn on_new_publication(
    clientd: *mut c_void,
    channel: *const c_char,
    stream_id: i32,
    session_id: i32,
    correlation_id: i64,
) {
    // SAFETY: C passes what it was given, and a channel that lives for the call.
    unsafe { on_added(clientd, channel, stream_id, Some(session_id), correlation_id) };
}

unsafe extern "C" fn on_new_subscription(
    clientd: *mut c_void,
    channel: *const c_char,
    stream_id: i32,
    correlation_id: i64,
) {
    // SAFETY: as above.
    unsafe { on_added(clientd, channel, stream_id, None, correlation_id) };
}

unsafe fn on_added(
    clientd: *mut c_void,
    channel: *const c_char,
    stream_id: i32,
    session_id: Option<i32>,
    registration_id: i64,
) {
    // SAFETY: `clientd` is what `install!` gave to C, with this type; C calls each such handler from
    // the conductor's work only, which does not overlap with itself.
    let handler = unsafe { Retained::<OnAdded>::exclusive(clientd) };
    // SAFETY: by the contract of C, terminated and alive.
    let channel = unsafe { ffi::lossy(channel) }.into_owned();
    let added = NewResource { channel, stream_id, session_id, registration_id };
    callback::run("handler of new resources", || handler(&added));
}

unsafe extern "C" fn on_publication_error(
    clientd: *mut c_void,
    values: *mut sys::aeron_publication_error_values_t,
) {
    // SAFETY: as in `on_close`. C passes a structure that lives for the call, followed by its
    // message.
    let (handlers, error) = unsafe {
        let handlers = &*clientd.cast::<Handlers<OnPublicationError>>();
        (handlers, PublicationError::from_raw(values))
    };
    handlers.call(|handler| handler(&error));
}

unsafe extern "C" fn on_start(state: *mut c_void, role_name: *const c_char) {
    // SAFETY: as in `on_added`: called once, before the conductor's work begins.
    let handler = unsafe { Retained::<OnStart>::exclusive(state) };
    // SAFETY: C passes a terminated name that lives for the call.
    let role = unsafe { ffi::lossy(role_name) };
    callback::run("start handler", || handler(&role));
}

unsafe extern "C" fn on_close(clientd: *mut c_void) {
    // SAFETY: `clientd` is what `install_handlers` gave to C, and outlives the client.
    let handlers = unsafe { &*clientd.cast::<Handlers<OnClose>>() };
    handlers.call(|handler| handler());
}

unsafe extern "C" fn on_counter(
    clientd: *mut c_void,
    reader: *mut sys::aeron_counters_reader_t,
    registration_id: i64,
    counter_id: i32,
) {
    // SAFETY: `clientd` is what `install_handlers` gave to C, and outlives the client that calls. C
    // passes the reader of that client, which is live meanwhile.
    let (handlers, reader) =
        unsafe { (&*clientd.cast::<Handlers<OnCounter>>(), CountersReader::from_raw(reader)) };
    handlers.call(|handler| handler(&reader, registration_id, counter_id));
}

impl PublicationError {
    /// # Safety
    /// `raw` points to a structure as C passes it to a handler: followed, beyond the one byte that
    /// the structure declares, by as much of the message as its length says.
    unsafe fn from_raw(raw: *const sys::aeron_publication_error_values_t) -> Self {
        const NO_GROUP_TAG: i64 = sys::AERON_NULL_VALUE as i64;
        // SAFETY: live, by the contract; read by copy, as the structure is packed.
        let values = unsafe { raw.read() };
        let length = usize::try_from(values.error_message_length).unwrap_or(0);
        // SAFETY: the message lies behind the fixed fields, by the contract.
        let message = unsafe {
            std::slice::from_raw_parts((&raw const (*raw).error_message).cast::<u8>(), length)
        };
        let group_tag = values.group_tag;
        Self {
            registration_id: values.registration_id,
            destination_registration_id: values.destination_registration_id,
            session_id: values.session_id,
            stream_id: values.stream_id,
            receiver_id: values.receiver_id,
            group_tag: (group_tag != NO_GROUP_TAG).then_some(group_tag),
            source: source(values.address_type, values.source_address, values.source_port),
            code: values.error_code,
            message: String::from_utf8_lossy(message).trim_end_matches('\0').to_owned(),
        }
    }
}

fn source(address_type: i16, address: [u8; 16], port: u16) -> Option<SocketAddr> {
    let ip = match u32::try_from(address_type).ok()? {
        sys::AERON_RESPONSE_ADDRESS_TYPE_IPV4 => {
            IpAddr::from([address[0], address[1], address[2], address[3]])
        }
        sys::AERON_RESPONSE_ADDRESS_TYPE_IPV6 => IpAddr::from(address),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart_by_their_type() {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[127, 0, 0, 1]);
        assert_eq!(source(1, address, 9), Some("127.0.0.1:9".parse().expect("an address")));
        assert_eq!(source(2, [0; 16], 9), Some("[::]:9".parse().expect("an address")));
        assert_eq!(source(0, address, 9), None);
        assert_eq!(source(-1, address, 9), None);
    }

    #[test]
    fn replaced_handlers_are_freed() {
        let captured = Arc::new(());
        let mut context = Context::new().expect("a context");
        for _ in 0..3 {
            let inner = Arc::clone(&captured);
            context
                .set_on_close(move || {
                    let _ = &inner;
                })
                .expect("a handler");
        }
        assert_eq!(Arc::strong_count(&captured), 2);
        drop(context);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}

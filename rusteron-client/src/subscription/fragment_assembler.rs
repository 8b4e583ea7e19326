//! Assemblers for polls of fragments.

use std::collections::HashMap;
use std::fmt;

use rusteron_core::log_buffer::BEGIN_FLAG;

use crate::subscription::assembly::Assembly;
use crate::subscription::image::{Action, Header};

/// Assembles long messages from their fragments, separately for each session.
///
/// [`Subscription::poll`](crate::Subscription::poll) and its relatives assemble messages
/// themselves. Use this type with polls of fragments: to see both fragments and messages, or to
/// store partly assembled messages outside a subscription.
///
/// Memory is allocated for a session's first message of several fragments. It is reused for all
/// later messages, until [`remove_session`](Self::remove_session). Each message starts at a multiple
/// of 32 bytes in memory, assembled or not.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// use rusteron_client::{FragmentAssembler, Header};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// # let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// # let long = vec![7; 10_000];
/// # while publication.offer(&long).is_err_and(|error| error.is_retryable()) {
/// #     std::thread::yield_now();
/// # }
/// let mut assembler = FragmentAssembler::new();
/// let mut received = 0;
/// while received == 0 {
///     let on_message = |message: &[u8], _: &Header<'_>| received = message.len();
///     subscription.poll_fragments(assembler.handler(on_message), 10)?;
/// }
/// assert_eq!(received, 10_000);
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_fragment_assembler_t` and `aeron_controlled_fragment_assembler_t`; dropping it,
/// to `aeron_fragment_assembler_delete` and `aeron_controlled_fragment_assembler_delete`.
#[doc(alias(
    "aeron_fragment_assembler_t",
    "aeron_controlled_fragment_assembler_t",
    "aeron_fragment_assembler_delete",
    "aeron_controlled_fragment_assembler_delete"
))]
#[derive(Default)]
pub struct FragmentAssembler {
    sessions: HashMap<i32, Assembly>,
}

impl FragmentAssembler {
    /// An assembler that has seen nothing yet.
    ///
    /// Corresponds to `aeron_fragment_assembler_create` and
    /// `aeron_controlled_fragment_assembler_create`.
    #[doc(alias("aeron_fragment_assembler_create", "aeron_controlled_fragment_assembler_create"))]
    pub fn new() -> Self {
        Self::default()
    }

    /// A handler for polls of fragments that passes whole messages on to `handler`.
    ///
    /// Corresponds to `aeron_fragment_assembler_handler`.
    #[doc(alias = "aeron_fragment_assembler_handler")]
    #[inline]
    pub fn handler<F>(&mut self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>)
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        move |fragment: &[u8], header: &Header<'_>| {
            if header.is_unfragmented() {
                handler(fragment, header);
            } else if let Some(assembly) = self.session(header) {
                assembly.poll(fragment, header, &mut handler);
            }
        }
    }

    /// A handler for controlled polls of fragments that passes whole messages on to `handler`.
    ///
    /// A message that it refuses, with [`Action::Abort`], is given again whole.
    ///
    /// Corresponds to `aeron_controlled_fragment_assembler_handler`.
    #[doc(alias = "aeron_controlled_fragment_assembler_handler")]
    #[inline]
    pub fn controlled_handler<F>(
        &mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        move |fragment: &[u8], header: &Header<'_>| {
            if header.is_unfragmented() {
                return handler(fragment, header);
            }
            match self.session(header) {
                Some(assembly) => assembly.controlled_poll(fragment, header, &mut handler),
                None => Action::Continue,
            }
        }
    }

    /// Frees the memory of a session, such as a session whose image has gone. Returns whether the
    /// session had memory.
    ///
    /// Corresponds to `aeron_fragment_assembler_delete_session_buffer` and
    /// `aeron_controlled_fragment_assembler_delete_session_buffer`.
    #[doc(alias(
        "aeron_fragment_assembler_delete_session_buffer",
        "aeron_controlled_fragment_assembler_delete_session_buffer"
    ))]
    pub fn remove_session(&mut self, session_id: i32) -> bool {
        self.sessions.remove(&session_id).is_some()
    }

    #[cold]
    fn session(&mut self, header: &Header<'_>) -> Option<&mut Assembly> {
        if header.flags() & BEGIN_FLAG == 0 {
            return self.sessions.get_mut(&header.session_id());
        }
        Some(self.sessions.entry(header.session_id()).or_insert(const { Assembly::new() }))
    }
}

impl fmt::Debug for FragmentAssembler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FragmentAssembler").field("sessions", &self.sessions.keys()).finish()
    }
}

/// Assembles long messages of one image from their fragments.
///
/// As [`FragmentAssembler`], for a single session, and so without looking up the session.
///
/// Corresponds to `aeron_image_fragment_assembler_t` and
/// `aeron_image_controlled_fragment_assembler_t`; dropping it, to
/// `aeron_image_fragment_assembler_delete` and `aeron_image_controlled_fragment_assembler_delete`.
#[doc(alias(
    "aeron_image_fragment_assembler_t",
    "aeron_image_controlled_fragment_assembler_t",
    "aeron_image_fragment_assembler_delete",
    "aeron_image_controlled_fragment_assembler_delete"
))]
pub struct ImageFragmentAssembler {
    assembly: Assembly,
}

impl ImageFragmentAssembler {
    /// An assembler that has seen nothing yet.
    ///
    /// Corresponds to `aeron_image_fragment_assembler_create` and
    /// `aeron_image_controlled_fragment_assembler_create`.
    #[doc(alias(
        "aeron_image_fragment_assembler_create",
        "aeron_image_controlled_fragment_assembler_create"
    ))]
    pub const fn new() -> Self {
        Self { assembly: Assembly::new() }
    }

    /// A handler for polls of fragments that passes whole messages on to `handler`.
    ///
    /// Corresponds to `aeron_image_fragment_assembler_handler`.
    #[doc(alias = "aeron_image_fragment_assembler_handler")]
    #[inline]
    pub fn handler<F>(&mut self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>)
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        move |fragment: &[u8], header: &Header<'_>| {
            self.assembly.poll(fragment, header, &mut handler);
        }
    }

    /// A handler for controlled polls and peeks of fragments that passes whole messages on to
    /// `handler`.
    ///
    /// A message that it refuses, with [`Action::Abort`], is given again whole.
    ///
    /// Corresponds to `aeron_image_controlled_fragment_assembler_handler`.
    #[doc(alias = "aeron_image_controlled_fragment_assembler_handler")]
    #[inline]
    pub fn controlled_handler<F>(
        &mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        move |fragment: &[u8], header: &Header<'_>| {
            self.assembly.controlled_poll(fragment, header, &mut handler)
        }
    }
}

impl Default for ImageFragmentAssembler {
    fn default() -> Self {
        Self::new()
    }
}

rusteron_core::impl_debug!(ImageFragmentAssembler);

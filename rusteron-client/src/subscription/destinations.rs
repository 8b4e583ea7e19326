//! The sources of a multi-destination subscription.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::Arc;

use rusteron_core::channel::{AsChannel, ChannelUse};
use rusteron_core::error::Result;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::destination::DestinationRegistration;
use crate::client::registration::Request;
use crate::subscription::Subscription;

/// Adds sources to a multi-destination subscription, and removes them, while another thread polls it.
///
/// Made by [`Subscription::destinations`]. The subscription may be closed meanwhile: requests then fail.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let mut subscription = aeron.add_subscription("aeron:udp?control-mode=manual", 1001)?;
/// let destinations = subscription.destinations();
/// let mut adding = destinations.async_add("aeron:udp?endpoint=127.0.0.1:24326")?;
/// while adding.poll()?.is_none() {
///     subscription.poll(|_, _| {}, 10)?; // usually another thread's
/// }
/// # Ok(())
/// # }
/// ```
pub struct SubscriptionDestinations {
    client: Arc<Client>,
    channel: String,
    registration_id: i64,
}

impl SubscriptionDestinations {
    pub(super) fn new(subscription: &Subscription) -> Self {
        Self {
            client: Arc::clone(subscription.client()),
            channel: subscription.channel().to_owned(),
            registration_id: subscription.registration_id(),
        }
    }

    /// Starts adding a source. Poll or await the result. Does not block.
    ///
    /// # Errors
    /// As for [`Subscription::async_add_destination`].
    pub fn async_add(&self, channel: impl AsChannel) -> Result<DestinationRegistration> {
        self.begin(
            &channel.to_c_string(ChannelUse::ReceiveDestination)?,
            sys::aeron_subscription_async_add_destination,
        )
    }

    /// Starts removing a source. Poll or await the result. Does not block.
    ///
    /// # Errors
    /// As for [`Subscription::async_remove_destination`].
    pub fn async_remove(&self, channel: impl AsChannel) -> Result<DestinationRegistration> {
        self.begin(
            &channel.to_c_string(ChannelUse::FormerReceiveDestination)?,
            sys::aeron_subscription_async_remove_destination,
        )
    }

    fn begin(
        &self,
        channel: &CStr,
        command: unsafe extern "C" fn(
            *mut *mut Request,
            *mut sys::aeron_t,
            *mut sys::aeron_subscription_t,
            *const c_char,
        ) -> c_int,
    ) -> Result<DestinationRegistration> {
        let owner_type = sys::rusteron_destination_owner_enum_RUSTERON_OWNER_SUBSCRIPTION;
        let owner = (owner_type, self.registration_id);
        // SAFETY: the function is one of C's for destinations of subscriptions, and copies the channel.
        unsafe {
            DestinationRegistration::begin(
                &self.client,
                &self.channel,
                owner,
                |request, client, owner| command(request, client, owner, channel.as_ptr()),
            )
        }
    }
}

impl fmt::Debug for SubscriptionDestinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionDestinations")
            .field("channel", &self.channel)
            .field("registration_id", &self.registration_id)
            .finish_non_exhaustive()
    }
}

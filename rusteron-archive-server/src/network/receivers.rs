//! The conductor's handles on subscriptions that the recorder polls.

use std::collections::HashMap;

use rusteron_client::{
    Aeron, DestinationRegistration, Result, Subscription, SubscriptionDestinations,
    UncheckedChannel,
};
use rusteron_core::cnc::i32_at;

use crate::conductor::effect::RegistrationId;
use crate::conductor::event::Event;
use crate::network::adding::refusal;

/// The type of the counters that name the sockets of a channel. The key has the id of the channel's status, then the length of
/// the address and the address.
const LOCAL_ADDRESS: i32 = 14;
/// The value of a counter whose socket is in use.
const IN_USE: i64 = 1;

/// The recorded subscriptions, by their registration ids.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    by_id: HashMap<RegistrationId, Receiver>,
    /// Destinations that are being added or removed.
    changing: Vec<(RegistrationId, Result<DestinationRegistration>)>,
}

#[derive(Debug)]
struct Receiver {
    destinations: SubscriptionDestinations,
    channel_status_id: i32,
}

impl Receivers {
    /// Takes note of a subscription, and adds a destination to it.
    pub(crate) fn add(&mut self, subscription: &Subscription, destination: Option<String>) {
        let id = RegistrationId::new(subscription.registration_id());
        let receiver = Receiver {
            destinations: subscription.destinations(),
            channel_status_id: subscription.channel_status_id(),
        };
        self.by_id.insert(id, receiver);
        if let Some(destination) = destination {
            self.add_destination(id, &destination);
        }
    }

    /// Begins to add a destination.
    pub(crate) fn add_destination(&mut self, id: RegistrationId, channel: &str) {
        let Some(receiver) = self.by_id.get(&id) else { return };
        let adding = receiver.destinations.async_add(UncheckedChannel(channel));
        self.changing.push((id, adding));
    }

    /// Begins to remove a destination.
    pub(crate) fn remove_destination(&mut self, id: RegistrationId, channel: &str) {
        let Some(receiver) = self.by_id.get(&id) else { return };
        // Checked: the driver would go on using some sources after it has freed them.
        let removing = receiver.destinations.async_remove(channel);
        self.changing.push((id, removing));
    }

    /// Forgets a subscription.
    pub(crate) fn remove(&mut self, id: RegistrationId) {
        self.by_id.remove(&id);
        self.changing.retain(|(changing, _)| *changing != id);
    }

    /// Passes on why a destination could not be added or removed.
    pub(crate) fn poll(&mut self, events: &mut Vec<Event>) {
        self.changing.retain_mut(|(id, changing)| {
            let error = match changing {
                Ok(registration) => match registration.poll() {
                    Ok(outcome) => return outcome.is_none(),
                    Err(error) => error,
                },
                Err(error) => error.clone(),
            };
            events.push(Event::DestinationFailed(*id, refusal(&error)));
            false
        });
    }

    /// Returns the address on which a subscription receives, once it has a socket.
    pub(crate) fn local_address(&self, aeron: &Aeron, id: RegistrationId) -> Option<String> {
        let status_id = self.by_id.get(&id)?.channel_status_id;
        let counters = aeron.counters_reader();
        let address = counters.iter().find(|counter| {
            counter.type_id == LOCAL_ADDRESS
                && counter.value == IN_USE
                && i32_at(&counter.key, 0) == Some(status_id)
        })?;
        let length = usize::try_from(i32_at(&address.key, 4)?).ok()?;
        let text = address.key.get(8..)?.get(..length)?;
        String::from_utf8(text.to_vec()).ok()
    }
}

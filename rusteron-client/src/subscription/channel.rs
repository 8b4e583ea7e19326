//! Destinations and resolved addresses of a subscription.

use std::ffi::CStr;
use std::net::SocketAddr;

use rusteron_core::channel::{AsChannel, ChannelStatus, ChannelText, local_addresses};
use rusteron_core::error::Result;
use rusteron_core::ffi::{Fallible, callback};
use rusteron_sys as sys;

use crate::client::destination::DestinationRegistration;
use crate::subscription::{Subscription, SubscriptionDestinations};

/// Sufficient length for a numeric address with its port and a NUL byte.
const ADDRESS_LENGTH: usize = sys::AERON_CLIENT_MAX_LOCAL_ADDRESS_STR_LEN as usize;

impl Subscription {
    /// Adds a source to a multi-destination subscription, and waits for the media driver's
    /// confirmation. A multi-destination subscription has `control-mode=manual` in its channel.
    ///
    /// A source is an IPC channel, a spy, or a UDP channel. A UDP source must not have
    /// `control-mode=response`. Some of [`Parameter`](crate::Parameter)'s parameters belong to the
    /// subscription's channel, and a UDP source must not have them: `Mtu`, `ReceiverWindow`,
    /// `SocketRcvbuf`, `SocketSndbuf`, `SocketTos` and `ResponseCorrelationId`.
    ///
    /// Blocks at most for the driver timeout. If a callback holds up the client's conductor, blocks
    /// at most for twice the driver timeout.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`](crate::ErrorKind::InvalidChannel): the channel is not valid, or the
    ///   subscription's is without `control-mode=manual`; the text names the parameter;
    /// - the errors of [`DestinationRegistration::poll`];
    /// - [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor): called from a
    ///   callback.
    ///
    /// Corresponds to `aeron_subscription_async_add_destination` and
    /// `aeron_subscription_async_destination_poll`.
    #[doc(alias(
        "aeron_subscription_async_add_destination",
        "aeron_subscription_async_destination_poll"
    ))]
    pub fn add_destination(&mut self, channel: impl AsChannel) -> Result<()> {
        callback::forbid_blocking("add_destination", Some("async_add_destination"))?;
        self.async_add_destination(channel)?.wait().map(drop)
    }

    /// Starts adding a source to a multi-destination subscription. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`](crate::ErrorKind::InvalidChannel): the channel is not valid, or the
    ///   subscription's is without `control-mode=manual`;
    /// - [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor): called from a
    ///   callback of a client without such a thread;
    /// - [`ErrorKind::BufferFull`](crate::ErrorKind::BufferFull): too many commands are waiting;
    /// - [`ErrorKind::ClientClosed`](crate::ErrorKind::ClientClosed): a fatal error has ended the
    ///   client;
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): a NUL byte in `channel`.
    ///
    /// Corresponds to `aeron_subscription_async_add_destination`.
    #[doc(alias = "aeron_subscription_async_add_destination")]
    pub fn async_add_destination(
        &mut self,
        channel: impl AsChannel,
    ) -> Result<DestinationRegistration> {
        self.destinations().async_add(channel)
    }

    /// Removes a source from a multi-destination subscription, and waits for the media driver's
    /// confirmation.
    ///
    /// A source that is joined at a control address, a UDP channel with
    /// [`Control`](crate::Parameter::Control), stays until the subscription is closed. Aeron's C
    /// driver would go on using such a source after freeing it. The same applies to a channel whose
    /// `Interface` has a port, because the driver could mistake it for such a source.
    ///
    /// Blocks as [`add_destination`](Self::add_destination) does.
    ///
    /// # Errors
    /// As for [`add_destination`](Self::add_destination);
    /// [`ErrorKind::InvalidChannel`](crate::ErrorKind::InvalidChannel) also for a source that cannot be
    /// removed, and [`ErrorKind::UnknownSubscription`](crate::ErrorKind::UnknownSubscription) for an
    /// IPC channel or a spy that was not added. Another UDP channel that was not added is no error.
    ///
    /// Corresponds to `aeron_subscription_async_remove_destination` and
    /// `aeron_subscription_async_destination_poll`.
    #[doc(alias(
        "aeron_subscription_async_remove_destination",
        "aeron_subscription_async_destination_poll"
    ))]
    pub fn remove_destination(&mut self, channel: impl AsChannel) -> Result<()> {
        callback::forbid_blocking("remove_destination", Some("async_remove_destination"))?;
        self.async_remove_destination(channel)?.wait().map(drop)
    }

    /// Starts removing a source from a multi-destination subscription. Poll or await the result.
    /// Does not block.
    ///
    /// # Errors
    /// As for [`async_add_destination`](Self::async_add_destination).
    ///
    /// Corresponds to `aeron_subscription_async_remove_destination`.
    #[doc(alias = "aeron_subscription_async_remove_destination")]
    pub fn async_remove_destination(
        &mut self,
        channel: impl AsChannel,
    ) -> Result<DestinationRegistration> {
        self.destinations().async_remove(channel)
    }

    /// Returns a handle that adds and removes sources while another thread polls the subscription.
    pub fn destinations(&self) -> SubscriptionDestinations {
        SubscriptionDestinations::new(self)
    }

    /// Returns the id of the counter with the channel's status; -1 if there is none, as for IPC.
    pub fn channel_status_id(&self) -> i32 {
        self.constants().channel_status_indicator_id
    }

    /// Returns the state of the channel's socket.
    ///
    /// Corresponds to `aeron_subscription_channel_status`.
    #[doc(alias = "aeron_subscription_channel_status")]
    pub fn channel_status(&self) -> ChannelStatus {
        // SAFETY: the subscription is live; the function reads an atomic counter.
        let status = unsafe { sys::aeron_subscription_channel_status(self.as_ptr()) };
        let counter_id = self.channel_status_id();
        ChannelStatus::from_c(status, counter_id, || self.is_closed())
    }

    /// Returns the addresses of the sockets that the subscription receives on. The list is empty
    /// over IPC, and until the sockets are set up. With several destinations there are several
    /// addresses.
    ///
    /// # Errors
    /// A live subscription causes none; the errors are C's.
    ///
    /// Corresponds to `aeron_subscription_local_sockaddrs`.
    #[doc(alias = "aeron_subscription_local_sockaddrs")]
    pub fn local_addresses(&self) -> Result<Vec<SocketAddr>> {
        local_addresses(|buffers, count| {
            // SAFETY: the subscription is live, and the buffers are as many as C is told, each
            // writable for its length.
            unsafe { sys::aeron_subscription_local_sockaddrs(self.as_ptr(), buffers, count) }
        })
    }

    /// Returns the address of the first socket that the subscription receives on: its endpoint,
    /// with names and a port of 0 resolved. Returns `None` over IPC, and until the socket is set
    /// up.
    ///
    /// # Errors
    /// A live subscription causes none; the errors are C's.
    ///
    /// Corresponds to `aeron_subscription_resolved_endpoint`.
    #[doc(alias = "aeron_subscription_resolved_endpoint")]
    pub fn resolved_endpoint(&self) -> Result<Option<String>> {
        let mut address = [0; ADDRESS_LENGTH];
        // SAFETY: the subscription is live, and C writes terminated text into the buffer, no longer
        // than that is.
        let found = unsafe {
            sys::aeron_subscription_resolved_endpoint(
                self.as_ptr(),
                address.as_mut_ptr().cast(),
                address.len(),
            )
        }
        .into_result()?;
        Ok((found > 0).then(|| text(&address)))
    }

    /// Returns the channel, with the actual port in place of an endpoint's port 0. Add a publisher
    /// of this stream with this channel. Returns `None` if the port is not known yet.
    ///
    /// A channel without such a port is returned as it is.
    ///
    /// # Errors
    /// A channel that C cannot parse, such as the channel of a spy.
    ///
    /// Corresponds to `aeron_subscription_try_resolve_channel_endpoint_port`.
    #[doc(alias = "aeron_subscription_try_resolve_channel_endpoint_port")]
    pub fn try_resolve_channel_endpoint_port(&self) -> Result<Option<String>> {
        // C looks for the colon of the port without checking that there is one.
        if !endpoints_have_ports(self.channel()) {
            return Ok(Some(self.channel().to_owned()));
        }
        // C copies an unchanged channel without checking the length. C may write the parameters of
        // a changed channel in another order, and add omitted parameters.
        let mut capacity = self.channel().len() + ADDRESS_LENGTH + 256;
        loop {
            let mut uri = vec![0_u8; capacity];
            // SAFETY: the subscription is live, and the buffer is longer than its channel; otherwise
            // C keeps to the length.
            let written = unsafe {
                sys::aeron_subscription_try_resolve_channel_endpoint_port(
                    self.as_ptr(),
                    uri.as_mut_ptr().cast(),
                    uri.len(),
                )
            }
            .into_result()? as usize;
            if written < capacity {
                return Ok((written > 0).then(|| text(&uri)));
            }
            capacity += written;
        }
    }
}

fn endpoints_have_ports(channel: &str) -> bool {
    ChannelText::new(channel).values("endpoint").all(|endpoint| endpoint.contains(':'))
}

/// Returns the text that C wrote into a buffer, up to the NUL byte.
fn text(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer).unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_a_port_is_noticed() {
        assert!(endpoints_have_ports("aeron:udp?interface=x|endpoint=host:0|mtu=8k"));
        assert!(endpoints_have_ports("aeron:ipc"));
        assert!(!endpoints_have_ports("aeron:udp?endpoint=host"));
        assert!(!endpoints_have_ports("aeron:udp?endpoint=host:1|endpoint=host"));
    }
}

//! Deliberate loss, for tests.

use std::ffi::CString;
use std::ptr;

use rusteron_core::ffi::Fallible;
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::DriverContext;
use crate::enumerations::named;

/// Rates at which a driver deliberately loses datagrams that pass its sockets.
///
/// ```
/// use rusteron_media_driver::{DriverContext, Loss};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let mut context = DriverContext::new()?;
/// // Every twentieth datagram of messages, and every hundredth status message and NAK.
/// context.set_receive_loss(Some(Loss { data_rate: 0.05, control_rate: 0.01, seed: 1 }))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// The share of lost datagrams from a publication to its subscriptions: messages, set-up frames
    /// and heartbeats. From 0 for none to 1 for all.
    pub data_rate: f64,
    /// The share of lost datagrams from subscriptions to their publication: status messages and
    /// NAKs. From 0 for none to 1 for all.
    pub control_rate: f64,
    /// Seed of the sequence of losses, which starts anew on each channel. Only the lower 48 bits
    /// are used.
    pub seed: u64,
}

named! {
    /// An interceptor that loses arriving datagrams, as Aeron's environment variables configure it.
    ///
    /// Interceptors are for programs that are configured by the environment. All drivers of a process
    /// share one configuration, in the environment variable that each interceptor names. Tests that run
    /// several drivers want [`Loss`].
    #[non_exhaustive]
    UdpInterceptor, "an interceptor";
    /// Loses datagrams at random: `AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS`, such as
    /// `rate=0.1|seed=7|recv-msg-mask=2`. Each agent of each driver follows the seed's sequence by
    /// itself. The agents of Aeron's own programs share one sequence, without a lock.
    Loss = "loss", "aeron_udp_channel_interceptor_loss_load";
    /// Loses one stretch of each term: `AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS`, such as
    /// `term-id=3|term-offset=0|length=4096`.
    FixedLoss = "fixed-loss", "aeron_udp_channel_interceptor_fixed_loss_load";
    /// Loses several stretches of each term: `AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS`.
    MultiGapLoss = "multi-gap-loss", "aeron_udp_channel_interceptor_multi_gap_loss_load";
}

/// A loss at a fixed address, which C reads whenever a channel is opened. Not a `Box`, which would
/// claim to be the only pointer to its content.
pub(crate) struct RetainedLoss(*mut sys::rusteron_loss_t);

// SAFETY: plain memory, which is never written.
unsafe impl Send for RetainedLoss {}

impl RetainedLoss {
    fn new(loss: Loss) -> Self {
        Self(Box::into_raw(Box::new(sys::rusteron_loss_t {
            data_rate: loss.data_rate,
            control_rate: loss.control_rate,
            // C takes -1 for no seed.
            seed: (loss.seed & 0xFFFF_FFFF_FFFF) as i64,
        })))
    }
}

impl Drop for RetainedLoss {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`; the context that C read it for is closed.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl DriverContext {
    /// Makes the driver lose a share of the datagrams on the channels of its publications, sent and
    /// received, for tests.
    ///
    /// Publications lose data before it is sent, and control frames as they arrive. The default
    /// `None` is no loss.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for a rate that is not between 0 and 1.
    pub fn set_send_loss(&mut self, loss: Option<Loss>) -> Result<&mut Self> {
        self.set_loss("send_loss", loss, sys::rusteron_driver_context_set_send_loss)
    }

    /// Makes the driver lose a share of the datagrams on the channels of its subscriptions,
    /// received and sent, for tests.
    ///
    /// Subscriptions lose data as it arrives, and control frames before they are sent. The default
    /// `None` is no loss.
    ///
    /// # Errors
    /// As for [`set_send_loss`](Self::set_send_loss).
    pub fn set_receive_loss(&mut self, loss: Option<Loss>) -> Result<&mut Self> {
        self.set_loss("receive_loss", loss, sys::rusteron_driver_context_set_receive_loss)
    }

    fn set_loss(
        &mut self,
        name: &str,
        loss: Option<Loss>,
        set: unsafe extern "C" fn(
            *mut sys::aeron_driver_context_t,
            *mut sys::rusteron_loss_t,
        ) -> std::ffi::c_int,
    ) -> Result<&mut Self> {
        for rate in loss.iter().flat_map(|loss| [loss.data_rate, loss.control_rate]) {
            if !(0.0..=1.0).contains(&rate) {
                let text = format!("{name}: a rate of {rate}, which is not between 0 and 1");
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            }
        }
        let loss = loss.map(RetainedLoss::new);
        let address = loss.as_ref().map_or(ptr::null_mut(), |loss| loss.0);
        // SAFETY: the context is live and not yet used by a driver, and keeps the structure for longer
        // than C reads it.
        unsafe { set(self.as_ptr(), address) }.into_result()?;
        self.retained.losses.extend(loss);
        Ok(self)
    }

    /// Sets the interceptors of arriving datagrams, in their order from the socket. The default is
    /// none.
    ///
    /// # Errors
    /// None with a valid context and up to ten interceptors.
    ///
    /// Corresponds to `aeron_driver_context_set_udp_channel_incoming_interceptors`.
    #[doc(alias = "aeron_driver_context_set_udp_channel_incoming_interceptors")]
    pub fn set_incoming_interceptors(
        &mut self,
        interceptors: &[UdpInterceptor],
    ) -> Result<&mut Self> {
        // C puts each interceptor in front of the earlier ones.
        let names: Vec<_> =
            interceptors.iter().rev().map(|interceptor| interceptor.name()).collect();
        let names = CString::new(names.join(",")).unwrap_or_default();
        let names = if interceptors.is_empty() { ptr::null() } else { names.as_ptr() };
        // SAFETY: the context is live and not yet used by a driver. The names are terminated, and
        // are in C's table. C owns the interceptors that it creates.
        unsafe { sys::rusteron_driver_context_load_incoming_interceptors(self.as_ptr(), names) }
            .into_result()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_gets_rates_and_lower_bits_of_the_seed() {
        let loss =
            RetainedLoss::new(Loss { data_rate: 0.5, control_rate: 0.25, seed: 7 | 1 << 48 });
        // SAFETY: `loss` owns the structure, which nothing else uses.
        let raw = unsafe { &*loss.0 };
        assert_eq!((raw.data_rate, raw.control_rate, raw.seed), (0.5, 0.25, 7));
    }
}

//! The types that can be given as a channel.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use crate::channel::uri::{ChannelUri, ChannelUriBuilder, ChannelUse, warnings};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::c_string;

/// A channel: a text such as `"aeron:ipc"`, a [`ChannelUri`], or its builder.
///
/// A text is checked like a [`ChannelUri`], and reaches the media driver as it was written. It can be
/// a `str`, `String`, `Cow<str>`, `Box<str>`, `Arc<str>`, `CStr` or `CString`.
///
/// The trait is sealed. These types, [`UncheckedChannel`], and references to them implement it.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// use rusteron_client::{ChannelUri, ErrorKind};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let channel = ChannelUri::ipc().term_length(65536).build()?;
/// let publication = aeron.add_publication(&channel, 1001)?;
/// let subscription = aeron.add_subscription("aeron:ipc", 1001)?;
///
/// let error = aeron.add_publication("aeron:ipc?term-length=63k", 1001).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidChannel);
/// assert_eq!(
///     error.to_string(),
///     "invalid channel: term-length=63k: must be a power of two from 64k to 1g (bytes)"
/// );
/// # Ok(())
/// # }
/// ```
pub trait AsChannel: sealed::Sealed {
    /// Returns the text for C, checked for this use of the channel.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidChannel`](crate::ErrorKind::InvalidChannel) for a wrong form, and for a value
    /// that is out of range or that the driver would not survive.
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString>;
}

/// A channel that is passed to the media driver unchecked. The driver decides about it.
///
/// Use it for drivers that accept more than Aeron's C driver of this version in its usual
/// configuration. An invalid channel is reported in the driver's words.
///
/// A few channels are refused all the same. The C driver, which may run in this process, would
/// crash over them or read beyond their end:
/// - texts that do not begin as a channel does;
/// - interfaces such as `127.0.0.1/24:80`, where the port has to come first;
/// - addresses such as `%[::1]:80`;
/// - durations such as `5m`, where `5ms` is meant.
///
/// ```
/// use rusteron_client::{Aeron, Result, Subscription, UncheckedChannel};
///
/// /// With a driver whose name resolver knows `ENDPOINT_A` with its port.
/// fn subscribe(aeron: &Aeron) -> Result<Subscription> {
///     aeron.add_subscription(UncheckedChannel("aeron:udp?endpoint=ENDPOINT_A"), 1001)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UncheckedChannel<'a>(pub &'a str);

impl AsChannel for str {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        let text = c_string(channel_use.argument(), self)?;
        let uri = self.parse()?;
        channel_use.check(&uri)?;
        warnings::log(channel_use, &uri);
        Ok(text)
    }
}

/// Implements the trait for types that dereference to another one of it.
macro_rules! as_target {
    ($($type:ty),+) => {
        $(impl sealed::Sealed for $type {}

        impl AsChannel for $type {
            fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
                (**self).to_c_string(channel_use)
            }
        })+
    };
}

as_target!(String, Cow<'_, str>, Box<str>, Arc<str>, CString);

impl AsChannel for CStr {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        let text = self.to_str().map_err(|error| {
            Error::new(ErrorKind::InvalidChannel, format!("{self:?}: must be UTF-8: {error}"))
        })?;
        text.to_c_string(channel_use)
    }
}

impl AsChannel for ChannelUriBuilder {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        self.clone().build()?.to_c_string(channel_use)
    }
}

impl AsChannel for ChannelUri {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        channel_use.check(self)?;
        warnings::log(channel_use, self);
        c_string(channel_use.argument(), &self.to_string())
    }
}

impl AsChannel for UncheckedChannel<'_> {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        let text = c_string(channel_use.argument(), self.0)?;
        channel_use.check_dangers(self.0)?;
        Ok(text)
    }
}

impl<T: AsChannel + ?Sized> AsChannel for &T {
    fn to_c_string(&self, channel_use: ChannelUse) -> Result<CString> {
        (**self).to_c_string(channel_use)
    }
}

mod sealed {
    use super::*;

    pub trait Sealed {}

    impl Sealed for str {}
    impl Sealed for CStr {}
    impl Sealed for ChannelUriBuilder {}
    impl Sealed for ChannelUri {}
    impl Sealed for UncheckedChannel<'_> {}
    impl<T: Sealed + ?Sized> Sealed for &T {}
}

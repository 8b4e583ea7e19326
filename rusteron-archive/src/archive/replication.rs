//! Copying recordings from one archive to another.

use std::ffi::{CStr, CString};
use std::fmt;
use std::ptr;

use rusteron_client::{AsChannel, Position};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_core::ffi::c_string;
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::archive::replay::setters;
use crate::checks::{file_io_max_length, or_null, other_than_null};
use crate::credentials;
use crate::error::{ArchiveError, Result};
use crate::ids::ReplicationId;

/// Parameters of a replication.
///
/// By default, replicates into a recording of its own, over the archive's own replication channel,
/// up to the end of the source. An active source is followed. Negative positions and recording ids,
/// and -1 for the other numbers, are refused when the replication is requested.
///
/// ```
/// use rusteron_archive::{RecordingId, ReplicationParams};
///
/// let copy = RecordingId::new(3);
/// let params = ReplicationParams::new().stop_position(8192).dst_recording_id(copy);
/// # let _ = params;
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
#[doc(alias = "aeron_archive_replication_params_t")]
#[must_use = "parameters do nothing by themselves"]
pub struct ReplicationParams {
    stop_position: Option<Position>,
    dst_recording_id: Option<RecordingId>,
    live_destination: String,
    replication_channel: String,
    src_response_channel: String,
    channel_tag_id: Option<i64>,
    subscription_tag_id: Option<i64>,
    file_io_max_length: Option<usize>,
    replication_session_id: Option<i32>,
    encoded_credentials: Vec<u8>,
}

impl ReplicationParams {
    /// A new recording, as long as the source.
    ///
    /// Corresponds to `aeron_archive_replication_params_init`.
    #[doc(alias = "aeron_archive_replication_params_init")]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Stops at a position, instead of following the source.
        ///
        /// Corresponds to `stop_position` of `aeron_archive_replication_params_t`.
        stop_position: Position;

        /// Extends a recording, instead of making a new one.
        ///
        /// Corresponds to `dst_recording_id` of `aeron_archive_replication_params_t`.
        dst_recording_id: RecordingId;

        /// Merges with the live stream at a destination when the replication has caught up with the
        /// live stream. From then on, the source is not used. The destination has to be a multicast
        /// address.
        ///
        /// Corresponds to `live_destination` of `aeron_archive_replication_params_t`.
        live_destination: impl Into<String>;

        /// Replicates over this channel. The default is the replication channel of the receiving
        /// archive.
        ///
        /// Corresponds to `replication_channel` of `aeron_archive_replication_params_t`.
        replication_channel: impl Into<String>;

        /// Has the source connect back over this channel, for response channels.
        ///
        /// Corresponds to `src_response_channel` of `aeron_archive_replication_params_t`.
        src_response_channel: impl Into<String>;

        /// Sets a tag of the receiving subscription's channel, with which the channel can be found and
        /// shared.
        ///
        /// Corresponds to `channel_tag_id` of `aeron_archive_replication_params_t`.
        channel_tag_id: i64;

        /// Sets a tag of the receiving subscription, with which the subscription can be found.
        ///
        /// Corresponds to `subscription_tag_id` of `aeron_archive_replication_params_t`.
        subscription_tag_id: i64;

        /// Limits one read from a file of the source to this number of bytes, up to 2,147,483,647. The
        /// default is the source's.
        ///
        /// Corresponds to `file_io_max_length` of `aeron_archive_replication_params_t`.
        file_io_max_length: usize;

        /// Replicates with this session id, instead of one that the source chooses.
        ///
        /// Corresponds to `replication_session_id` of `aeron_archive_replication_params_t`.
        replication_session_id: i32;

        /// Sets the credentials with which the receiving archive connects to the source, 3,072 bytes at
        /// most.
        ///
        /// Corresponds to `encoded_credentials` of `aeron_archive_replication_params_t`.
        encoded_credentials: impl Into<Vec<u8>>;
    }
}

/// Shows only the length of the credentials.
impl fmt::Debug for ReplicationParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicationParams")
            .field("stop_position", &self.stop_position)
            .field("dst_recording_id", &self.dst_recording_id)
            .field("live_destination", &self.live_destination)
            .field("replication_channel", &self.replication_channel)
            .field("src_response_channel", &self.src_response_channel)
            .field("channel_tag_id", &self.channel_tag_id)
            .field("subscription_tag_id", &self.subscription_tag_id)
            .field("file_io_max_length", &self.file_io_max_length)
            .field("replication_session_id", &self.replication_session_id)
            .field("encoded_credentials", &format_args!("{} bytes", self.encoded_credentials.len()))
            .finish()
    }
}

const OPERATION: &str = "replicate";

/// Replicating.
impl Archive {
    /// Has this archive copy a recording of another archive. Returns the id of the replication.
    ///
    /// `src_control_channel` and `src_control_stream_id` are where the source receives requests.
    /// [Signals](crate::ArchiveContext::set_recording_signal_consumer) report the progress. Errors arrive
    /// without a request: see [`check_for_error_response`](Self::check_for_error_response).
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): the credentials or the channels
    ///   together are too long, or a number stands for none;
    /// - others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_replicate`.
    #[doc(alias("aeron_archive_replicate", "taggedReplicate"))]
    pub fn replicate(
        &self,
        src_recording_id: RecordingId,
        src_control_channel: impl AsChannel,
        src_control_stream_id: i32,
        params: &ReplicationParams,
    ) -> Result<ReplicationId> {
        let id = Some(("src_recording_id", src_recording_id.get()));
        with_raw(&src_control_channel, params, |src_control_channel, raw_params| {
            // SAFETY: `ask` passes the live structure; all texts live during the call, and C keeps
            // none of them.
            self.ask(OPERATION, id, |replication_id, raw| unsafe {
                sys::aeron_archive_replicate(
                    replication_id,
                    raw,
                    src_recording_id.get(),
                    src_control_channel.as_ptr(),
                    src_control_stream_id,
                    raw_params,
                )
            })
        })?
        .map(ReplicationId::new)
    }

    /// Stops a replication.
    ///
    /// # Errors
    /// [`UnknownReplication`](crate::ArchiveErrorKind::UnknownReplication): there is no such
    /// replication, or not any more; others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_stop_replication`.
    #[doc(alias = "aeron_archive_stop_replication")]
    pub fn stop_replication(&self, replication_id: ReplicationId) -> Result<()> {
        let id = Some(("replication_id", replication_id.get()));
        // SAFETY: `request` passes the live structure.
        self.request("stop_replication", id, |raw| unsafe {
            sys::aeron_archive_stop_replication(raw, replication_id.get())
        })
    }

    /// As [`stop_replication`](Self::stop_replication), but returns `false` if there is no such
    /// replication.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_try_stop_replication`.
    #[doc(alias = "aeron_archive_try_stop_replication")]
    pub fn try_stop_replication(&self, replication_id: ReplicationId) -> Result<bool> {
        let id = Some(("replication_id", replication_id.get()));
        // SAFETY: `ask` passes the live structure.
        self.ask("try_stop_replication", id, |is_stopped, raw| unsafe {
            sys::aeron_archive_try_stop_replication(is_stopped, raw, replication_id.get())
        })
    }
}

/// Checks the parameters, and calls with them as C reads them. They live during the call only.
pub(crate) fn with_raw<T>(
    src_control_channel: &impl AsChannel,
    params: &ReplicationParams,
    call: impl FnOnce(&CStr, &mut sys::aeron_archive_replication_params_t) -> T,
) -> Result<T> {
    let src_control_channel = src_control_channel.to_c_string(ChannelUse::Publication)?;
    let live_destination = c_string("live_destination", &params.live_destination)?;
    let replication_channel = c_string("replication_channel", &params.replication_channel)?;
    let src_response_channel = c_string("src_response_channel", &params.src_response_channel)?;
    check_length(
        [&src_control_channel, &live_destination, &replication_channel, &src_response_channel],
        &params.encoded_credentials,
    )?;
    let mut credentials = sys::aeron_archive_encoded_credentials_t {
        data: params.encoded_credentials.as_ptr().cast(),
        length: params.encoded_credentials.len() as u32,
    };
    let has_credentials = !params.encoded_credentials.is_empty();
    let mut raw_params = sys::aeron_archive_replication_params_t {
        stop_position: or_null(OPERATION, "stop_position", params.stop_position)?,
        dst_recording_id: or_null(
            OPERATION,
            "dst_recording_id",
            params.dst_recording_id.map(RecordingId::get),
        )?,
        live_destination: live_destination.as_ptr(),
        replication_channel: replication_channel.as_ptr(),
        src_response_channel: src_response_channel.as_ptr(),
        channel_tag_id: other_than_null(OPERATION, "channel_tag_id", params.channel_tag_id)?,
        subscription_tag_id: other_than_null(
            OPERATION,
            "subscription_tag_id",
            params.subscription_tag_id,
        )?,
        file_io_max_length: file_io_max_length(OPERATION, params.file_io_max_length)?,
        replication_session_id: other_than_null(
            OPERATION,
            "replication_session_id",
            params.replication_session_id,
        )?,
        encoded_credentials: if has_credentials { &mut credentials } else { ptr::null_mut() },
    };
    Ok(call(&src_control_channel, &mut raw_params))
}

/// Checks that the request fits into C's buffer, because C drops the rest without an error.
fn check_length(texts: [&CString; 4], credentials: &[u8]) -> Result<()> {
    const BUFFER: usize = 8 * 1024;
    /// The fixed fields of the request, and the lengths of the others.
    const FIXED: usize = 128;
    let length: usize = texts.iter().map(|text| text.count_bytes()).sum();
    let invalid = |text: String| Err(ArchiveError::invalid(OPERATION, text));
    if credentials.len() > credentials::MAX_LENGTH {
        let (length, maximum) = (credentials.len(), credentials::MAX_LENGTH);
        return invalid(format!("credentials of {length} bytes; the maximum is {maximum}"));
    }
    if length + credentials.len() + FIXED > BUFFER {
        return invalid(format!(
            "channels of {length} bytes and credentials of {} do not fit into a request",
            credentials.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_credentials() {
        let params = ReplicationParams::new().encoded_credentials(*b"secret").stop_position(64);
        let text = format!("{params:?}");
        assert!(text.contains("encoded_credentials: 6 bytes"), "{text}");
        assert!(text.contains("stop_position: Some(64)"), "{text}");
        let first_letters = format!("{}, {}", b's', b'e');
        assert!(!text.contains("secret") && !text.contains(&first_letters), "{text}");
    }
}

//! Iterators over an archive's recordings and subscriptions.

use std::collections::VecDeque;
use std::ffi::{CString, c_void};

use rusteron_core::ffi::{Fallible, c_string};
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::checks::NULL_VALUE;
use crate::error::Result;
use crate::recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};

/// Number of descriptors in one request.
const PAGE: i32 = 128;

/// Listing.
impl Archive {
    /// Lists all recordings, by ascending id.
    ///
    /// ```
    /// use rusteron_archive::{Archive, Result};
    ///
    /// fn print_all(archive: &Archive) -> Result<()> {
    ///     for recording in archive.recordings() {
    ///         let recording = recording?;
    ///         println!("{}: {}", recording.recording_id, recording.original_channel);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// The iterator requests pages of 128. Other requests can be made between two items. An
    /// iterator that has returned an error ends.
    ///
    /// Corresponds to `aeron_archive_list_recordings`.
    #[doc(alias("aeron_archive_list_recordings", "listRecordings"))]
    pub fn recordings(&self) -> Recordings<'_> {
        self.recordings_from(0)
    }

    /// Lists the recordings with this id and higher ids, by ascending id. For a negative id, the
    /// only item is an error.
    ///
    /// Corresponds to `aeron_archive_list_recordings`.
    #[doc(alias("aeron_archive_list_recordings", "listRecordings"))]
    pub fn recordings_from(&self, recording_id: i64) -> Recordings<'_> {
        Recordings::new(self, Filter::All, recording_id)
    }

    /// Lists the recordings with this stream id whose original channel contains a text, by
    /// ascending id.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a text of more than 4,095 bytes;
    /// - [`Client`](crate::ArchiveErrorKind::Client): a NUL byte in the text.
    ///
    /// Corresponds to `aeron_archive_list_recordings_for_uri`.
    #[doc(alias("aeron_archive_list_recordings_for_uri", "listRecordingsForUri"))]
    pub fn recordings_for_uri(
        &self,
        channel_fragment: &str,
        stream_id: i32,
    ) -> Result<Recordings<'_>> {
        let channel_fragment = fragment(channel_fragment)?;
        Ok(Recordings::new(self, Filter::Uri { channel_fragment, stream_id }, 0))
    }

    /// Returns one recording, or `None` if there is none with this id.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_list_recording`.
    #[doc(alias("aeron_archive_list_recording", "listRecording"))]
    pub fn recording(&self, recording_id: i64) -> Result<Option<RecordingDescriptor>> {
        let mut found = Vec::new();
        let mut count = 0;
        self.listing("recording", Some(("recording_id", recording_id)), |raw| {
            // SAFETY: `listing` passes the live structure; the consumer's vector lives during the
            // call, and C uses it in that only.
            unsafe {
                sys::aeron_archive_list_recording(
                    &mut count,
                    raw,
                    recording_id,
                    Some(push_recording),
                    (&raw mut found).cast(),
                )
            }
            .into_result()
        })?;
        Ok(found.pop())
    }

    /// Returns the highest id, from `min_recording_id` on, of a recording with this stream id and
    /// session id whose original channel contains a text. `None` if there is no such recording.
    ///
    /// # Errors
    /// As for [`recordings_for_uri`](Self::recordings_for_uri) and
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_find_last_matching_recording`.
    #[doc(alias = "aeron_archive_find_last_matching_recording")]
    pub fn find_last_matching_recording(
        &self,
        min_recording_id: i64,
        channel_fragment: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<Option<i64>> {
        let channel_fragment = fragment(channel_fragment)?;
        let mut recording_id = NULL_VALUE;
        let min_id = Some(("min_recording_id", min_recording_id));
        self.request("find_last_matching_recording", min_id, |raw| {
            // SAFETY: `request` passes the live structure; the text lives during the call.
            unsafe {
                sys::aeron_archive_find_last_matching_recording(
                    &mut recording_id,
                    raw,
                    min_recording_id,
                    channel_fragment.as_ptr(),
                    stream_id,
                    session_id,
                )
            }
            .into_result()
        })?;
        Ok((recording_id != NULL_VALUE).then_some(recording_id))
    }

    /// Lists the subscriptions with which the archive records. Selects by a text that the channel
    /// contains, and by the stream id if one is given.
    ///
    /// The iterator requests pages of 128, by index in the archive's list. A subscription that is
    /// added or ended meanwhile can be missed, or can make another one come twice or not at all.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a text of more than 4,095 bytes;
    /// - [`Client`](crate::ArchiveErrorKind::Client): a NUL byte in the text.
    ///
    /// Corresponds to `aeron_archive_list_recording_subscriptions`.
    #[doc(alias("aeron_archive_list_recording_subscriptions", "listRecordingSubscriptions"))]
    pub fn recording_subscriptions(
        &self,
        channel_fragment: &str,
        stream_id: Option<i32>,
    ) -> Result<RecordingSubscriptions<'_>> {
        Ok(RecordingSubscriptions {
            archive: self,
            channel_fragment: fragment(channel_fragment)?,
            stream_id,
            next_index: 0,
            page: VecDeque::new(),
            is_last: false,
        })
    }

    fn recording_page(&self, filter: &Filter, from: i64) -> Result<Vec<RecordingDescriptor>> {
        let mut found: Vec<RecordingDescriptor> = Vec::new();
        let mut count = 0;
        let consumer: sys::aeron_archive_recording_descriptor_consumer_func_t =
            Some(push_recording);
        let clientd = (&raw mut found).cast();
        self.listing("recordings", Some(("recording_id", from)), |raw| {
            // SAFETY: as in `recording`; the text lives during the call.
            unsafe {
                match filter {
                    Filter::All => sys::aeron_archive_list_recordings(
                        &mut count, raw, from, PAGE, consumer, clientd,
                    ),
                    Filter::Uri { channel_fragment, stream_id } => {
                        sys::aeron_archive_list_recordings_for_uri(
                            &mut count,
                            raw,
                            from,
                            PAGE,
                            channel_fragment.as_ptr(),
                            *stream_id,
                            consumer,
                            clientd,
                        )
                    }
                }
            }
            .into_result()
        })?;
        Ok(found)
    }
}

/// Checks a part of a channel, which can be at most as long as a channel.
pub(crate) fn fragment(text: &str) -> Result<CString> {
    const MAX: usize = 4095;
    if text.len() > MAX {
        return Err(crate::ArchiveError::invalid(
            "listing",
            format!("channel_fragment: {} bytes; the maximum is {MAX}", text.len()),
        ));
    }
    Ok(c_string("channel_fragment", text)?)
}

/// The recordings of an archive; made by [`Archive::recordings`] and its relatives.
#[must_use = "iterators are lazy: nothing is listed until they are iterated over"]
pub struct Recordings<'a> {
    archive: &'a Archive,
    filter: Filter,
    next_id: i64,
    page: VecDeque<RecordingDescriptor>,
    is_last: bool,
}

enum Filter {
    All,
    Uri { channel_fragment: CString, stream_id: i32 },
}

impl<'a> Recordings<'a> {
    fn new(archive: &'a Archive, filter: Filter, next_id: i64) -> Self {
        Self { archive, filter, next_id, page: VecDeque::new(), is_last: false }
    }
}

impl Iterator for Recordings<'_> {
    type Item = Result<RecordingDescriptor>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() && !self.is_last {
            match self.archive.recording_page(&self.filter, self.next_id) {
                Ok(found) => {
                    self.is_last = found.len() < PAGE as usize;
                    let last = found.last().map(|descriptor| descriptor.recording_id);
                    self.next_id = last.map_or(self.next_id, |id| id.saturating_add(1));
                    self.page = found.into();
                }
                Err(error) => {
                    self.is_last = true;
                    return Some(Err(error));
                }
            }
        }
        self.page.pop_front().map(Ok)
    }
}

rusteron_core::impl_debug!(Recordings<'_>: next_id);

/// The subscriptions with which an archive records; made by [`Archive::recording_subscriptions`].
#[must_use = "iterators are lazy: nothing is listed until they are iterated over"]
pub struct RecordingSubscriptions<'a> {
    archive: &'a Archive,
    channel_fragment: CString,
    stream_id: Option<i32>,
    next_index: i32,
    page: VecDeque<RecordingSubscriptionDescriptor>,
    is_last: bool,
}

impl RecordingSubscriptions<'_> {
    fn next_page(&mut self) -> Result<Vec<RecordingSubscriptionDescriptor>> {
        let mut found: Vec<RecordingSubscriptionDescriptor> = Vec::new();
        let mut count = 0;
        self.archive.listing("recording_subscriptions", None, |raw| {
            // SAFETY: `listing` passes the live structure; text and vector live during the call, and
            // C uses them in that only.
            unsafe {
                sys::aeron_archive_list_recording_subscriptions(
                    &mut count,
                    raw,
                    self.next_index,
                    PAGE,
                    self.channel_fragment.as_ptr(),
                    self.stream_id.unwrap_or(0),
                    self.stream_id.is_some(),
                    Some(push_subscription),
                    (&raw mut found).cast(),
                )
            }
            .into_result()
        })?;
        Ok(found)
    }
}

impl Iterator for RecordingSubscriptions<'_> {
    type Item = Result<RecordingSubscriptionDescriptor>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() && !self.is_last {
            match self.next_page() {
                Ok(found) => {
                    self.is_last = found.len() < PAGE as usize;
                    self.next_index = self.next_index.saturating_add(found.len() as i32);
                    self.page = found.into();
                }
                Err(error) => {
                    self.is_last = true;
                    return Some(Err(error));
                }
            }
        }
        self.page.pop_front().map(Ok)
    }
}

rusteron_core::impl_debug!(RecordingSubscriptions<'_>: channel_fragment, stream_id);

/// # Safety
/// `clientd` points to a `Vec<RecordingDescriptor>` with no other user; the descriptor is live.
unsafe extern "C" fn push_recording(
    descriptor: *mut sys::aeron_archive_recording_descriptor_t,
    clientd: *mut c_void,
) {
    // SAFETY: C passes the `clientd` of the request, a `Vec` that only this handler uses, and a descriptor whose
    // texts are as long as it says.
    unsafe {
        let found = &mut *clientd.cast::<Vec<RecordingDescriptor>>();
        found.push(RecordingDescriptor::from_raw(&*descriptor));
    }
}

/// # Safety
/// As for [`push_recording`], with a `Vec<RecordingSubscriptionDescriptor>`.
unsafe extern "C" fn push_subscription(
    descriptor: *mut sys::aeron_archive_recording_subscription_descriptor_t,
    clientd: *mut c_void,
) {
    // SAFETY: as in `push_recording`.
    unsafe {
        let found = &mut *clientd.cast::<Vec<RecordingSubscriptionDescriptor>>();
        found.push(RecordingSubscriptionDescriptor::from_raw(&*descriptor));
    }
}

//! Iterators over an archive's recordings and subscriptions.

use std::ffi::{CString, c_int, c_void};
use std::{fmt, vec};

use rusteron_core::RecordingId;
use rusteron_core::ffi::{Fallible, c_string};
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::checks::{Id, unless_null};
use crate::context::set_error_handler;
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
        self.recordings_from(RecordingId::new(0))
    }

    /// Lists the recordings with this id and higher ids, by ascending id. For a negative id, the
    /// only item is an error.
    ///
    /// Corresponds to `aeron_archive_list_recordings`.
    #[doc(alias("aeron_archive_list_recordings", "listRecordings"))]
    pub fn recordings_from(&self, recording_id: RecordingId) -> Recordings<'_> {
        // SAFETY: `recording_pages` passes the live structure and the consumer's vector.
        self.recording_pages(recording_id, |count, raw, from, found| unsafe {
            sys::aeron_archive_list_recordings(count, raw, from, PAGE, Some(push_recording), found)
        })
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
        // SAFETY: as in `recordings_from`; the iterator owns the text.
        Ok(self.recording_pages(RecordingId::new(0), move |count, raw, from, found| unsafe {
            sys::aeron_archive_list_recordings_for_uri(
                count,
                raw,
                from,
                PAGE,
                channel_fragment.as_ptr(),
                stream_id,
                Some(push_recording),
                found,
            )
        }))
    }

    /// Returns one recording, or `None` if there is none with this id.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_list_recording`.
    #[doc(alias("aeron_archive_list_recording", "listRecording"))]
    pub fn recording(&self, recording_id: RecordingId) -> Result<Option<RecordingDescriptor>> {
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: `list` passes the live structure and the consumer's vector.
        let found = self.list("recording", id, |count, raw, found| unsafe {
            sys::aeron_archive_list_recording(
                count,
                raw,
                recording_id.get(),
                Some(push_recording),
                found,
            )
        });
        Ok(found?.pop())
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
        min_recording_id: RecordingId,
        channel_fragment: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<Option<RecordingId>> {
        let channel_fragment = fragment(channel_fragment)?;
        let min_id = Some(("min_recording_id", min_recording_id.get()));
        // SAFETY: `ask` passes the live structure; the text lives during the call.
        let found = self.ask("find_last_matching_recording", min_id, |recording_id, raw| unsafe {
            sys::aeron_archive_find_last_matching_recording(
                recording_id,
                raw,
                min_recording_id.get(),
                channel_fragment.as_ptr(),
                stream_id,
                session_id,
            )
        });
        found.map(|id| unless_null(id).map(RecordingId::new))
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
        let channel_fragment = fragment(channel_fragment)?;
        let mut from = 0;
        Ok(Listing::new(move || {
            // SAFETY: `list` passes the live structure and the consumer's vector; the iterator owns
            // the text.
            let page = self.list("recording_subscriptions", None, |count, raw, found| unsafe {
                sys::aeron_archive_list_recording_subscriptions(
                    count,
                    raw,
                    from,
                    PAGE,
                    channel_fragment.as_ptr(),
                    stream_id.unwrap_or(0),
                    stream_id.is_some(),
                    Some(push_subscription),
                    found,
                )
            })?;
            from = from.saturating_add(page.len() as i32);
            Ok(page)
        }))
    }

    /// Lists recordings with a C function that is passed the first id of a page.
    fn recording_pages<'a>(
        &'a self,
        mut from: RecordingId,
        call: impl Fn(&mut i32, *mut sys::aeron_archive_t, i64, *mut c_void) -> c_int + Send + Sync + 'a,
    ) -> Recordings<'a> {
        Listing::new(move || {
            let id = Some(("recording_id", from.get()));
            let page: Vec<RecordingDescriptor> =
                self.list("recordings", id, |count, raw, found| {
                    call(count, raw, from.get(), found)
                })?;
            from = page.last().map_or(from, |last| last.recording_id.saturating_next());
            Ok(page)
        })
    }

    /// Runs a C function that passes descriptors to a consumer, which adds them to a `Vec<T>`.
    ///
    /// In a listing, C gives the error handler texts that are not terminated, and reads past their
    /// end. So there is no handler during a listing.
    fn list<T>(
        &self,
        operation: &'static str,
        relevant_id: Option<Id>,
        call: impl FnOnce(&mut i32, *mut sys::aeron_archive_t, *mut c_void) -> c_int,
    ) -> Result<Vec<T>> {
        let mut found = Vec::<T>::new();
        let outcome = self.undelivered_request(operation, relevant_id, |raw| {
            // SAFETY: the session is live, and has a copy of the context.
            let context = unsafe { sys::aeron_archive_get_archive_context(raw) };
            let events = self.context().events();
            // SAFETY: the context belongs to the live session. The held request lock keeps other
            // threads from it.
            unsafe { set_error_handler(context, None) }?;
            let outcome = call(&mut 0, raw, (&raw mut found).cast()).into_result();
            if events.has_on_error() {
                // SAFETY: the context belongs to the live session, whose request lock is held; the session owns
                // the events.
                unsafe { set_error_handler(context, Some(events)) }?;
            }
            outcome
        });
        self.deliver();
        outcome.map(|_| found)
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
pub type Recordings<'a> = Listing<'a, RecordingDescriptor>;

/// The subscriptions with which an archive records; made by [`Archive::recording_subscriptions`].
pub type RecordingSubscriptions<'a> = Listing<'a, RecordingSubscriptionDescriptor>;

/// A listing of an archive, which requests a page when it has given out the page before.
#[must_use = "iterators are lazy: nothing is listed until they are iterated over"]
pub struct Listing<'a, T> {
    request_page: Box<dyn FnMut() -> Result<Vec<T>> + Send + Sync + 'a>,
    page: vec::IntoIter<T>,
    is_last: bool,
}

impl<'a, T> Listing<'a, T> {
    fn new(request_page: impl FnMut() -> Result<Vec<T>> + Send + Sync + 'a) -> Self {
        let page = Vec::new().into_iter();
        Self { request_page: Box::new(request_page), page, is_last: false }
    }
}

impl<T> Iterator for Listing<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 && !self.is_last {
            match (self.request_page)() {
                Ok(found) => {
                    self.is_last = found.len() < PAGE as usize;
                    self.page = found.into_iter();
                }
                Err(error) => {
                    self.is_last = true;
                    return Some(Err(error));
                }
            }
        }
        self.page.next().map(Ok)
    }
}

impl<T> fmt::Debug for Listing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("is_last", &self.is_last).finish_non_exhaustive()
    }
}

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

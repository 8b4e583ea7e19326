//! Making recordings shorter, and moving their files, without blocking.

use rusteron_client::__private::subscription_channel;
use rusteron_client::{AsChannel, Position};
use rusteron_sys::archive as sys;

use crate::async_archive::async_archive::{AsyncArchive, count};
use crate::async_archive::request::Request;
use crate::error::Result;

/// Maintenance of recordings.
impl AsyncArchive {
    /// As [`Archive::truncate_recording`](crate::Archive::truncate_recording).
    pub fn truncate_recording(
        &self,
        recording_id: i64,
        position: Position,
    ) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_truncate_recording;
        let second = ("position", position);
        self.send_ids("truncate_recording", ("recording_id", recording_id), second, count, send)
    }

    /// As [`Archive::purge_recording`](crate::Archive::purge_recording).
    pub fn purge_recording(&self, recording_id: i64) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_purge_recording;
        self.send_id("purge_recording", ("recording_id", recording_id), count, send)
    }

    /// As [`Archive::detach_segments`](crate::Archive::detach_segments).
    pub fn detach_segments(
        &self,
        recording_id: i64,
        new_start_position: Position,
    ) -> Result<Request<()>> {
        let send = sys::aeron_archive_proxy_detach_segments;
        let second = ("new_start_position", new_start_position);
        self.send_ids("detach_segments", ("recording_id", recording_id), second, drop, send)
    }

    /// As [`Archive::delete_detached_segments`](crate::Archive::delete_detached_segments).
    pub fn delete_detached_segments(&self, recording_id: i64) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_delete_detached_segments;
        self.send_id("delete_detached_segments", ("recording_id", recording_id), count, send)
    }

    /// As [`Archive::purge_segments`](crate::Archive::purge_segments).
    pub fn purge_segments(
        &self,
        recording_id: i64,
        new_start_position: Position,
    ) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_purge_segments;
        let second = ("new_start_position", new_start_position);
        self.send_ids("purge_segments", ("recording_id", recording_id), second, count, send)
    }

    /// As [`Archive::attach_segments`](crate::Archive::attach_segments).
    pub fn attach_segments(&self, recording_id: i64) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_attach_segments;
        self.send_id("attach_segments", ("recording_id", recording_id), count, send)
    }

    /// As [`Archive::migrate_segments`](crate::Archive::migrate_segments).
    pub fn migrate_segments(
        &self,
        src_recording_id: i64,
        dst_recording_id: i64,
    ) -> Result<Request<u64>> {
        let send = sys::aeron_archive_proxy_migrate_segments;
        let first = ("src_recording_id", src_recording_id);
        let second = ("dst_recording_id", dst_recording_id);
        self.send_ids("migrate_segments", first, second, count, send)
    }

    /// As [`Archive::update_channel`](crate::Archive::update_channel).
    pub fn update_channel(
        &self,
        recording_id: i64,
        new_channel: impl AsChannel,
    ) -> Result<Request<()>> {
        let channel = subscription_channel(&new_channel)?;
        let about = Some(("recording_id", recording_id));
        self.send("update_channel", about, drop, |proxy, id| {
            // SAFETY: `send` passes the live structure; the channel lives during the call.
            unsafe {
                sys::aeron_archive_proxy_update_channel(proxy, id, recording_id, channel.as_ptr())
            }
        })
    }
}

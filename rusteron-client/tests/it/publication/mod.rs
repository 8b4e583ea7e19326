mod batch;
mod block;
mod buffer_claim;
#[cfg(unix)]
mod corrupt_log_buffer;
mod publication;
mod publisher;
mod shared_publishers;
mod stopped_batch;

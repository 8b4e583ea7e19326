mod batch;
mod block;
mod buffer_claim;
mod publication;
mod shared_publishers;
mod stopped_batch;

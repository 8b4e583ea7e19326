//! Glob imports of all crates: each name means one thing.

use rusteron_archive::*;
use rusteron_client::*;
use rusteron_cluster::*;
use rusteron_media_driver::*;

/// Compiles only if no name is ambiguous.
type Names = (
    (Context, DriverContext, ArchiveContext, PersistentSubscriptionContext),
    (ClusterContext, ServiceContext),
    (AsyncConnect, AsyncArchiveConnect, AsyncClusterConnect),
    (CloseCause, ClusterCloseCause),
    (Error, ErrorKind, ArchiveErrorKind, ClusterErrorKind, IdleStrategyKind),
    Box<dyn CredentialsSupplier>,
);

#[test]
fn contexts_have_setters_of_one_style() -> std::result::Result<(), Box<dyn std::error::Error>> {
    assert!(size_of::<Names>() > 0);
    Context::new()?.set_client_name("a")?.set_pre_touch_mapped_memory(true)?;
    DriverContext::new()?.set_mtu_length(1408)?.set_threading_mode(ThreadingMode::Shared)?;
    ArchiveContext::new()?.set_client_name("a")?.set_control_request_stream_id(1)?;
    ClusterContext::new().set_client_name("a")?.set_egress_stream_id(1)?;
    ServiceContext::new().set_service_name("a")?.set_service_id(1)?;
    PersistentSubscriptionContext::new(0.into(), "aeron:ipc", 1, "aeron:ipc", 2)?
        .set_start_position(StartPosition::Start)?;
    Ok(())
}

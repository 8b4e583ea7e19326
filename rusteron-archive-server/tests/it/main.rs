//! Archive servers, and the programs that run them. Servers are used by the client `rusteron-archive`, on embedded media
//! drivers; these modules have subjects, and the others mirror `src/`.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(all(feature = "binary", target_os = "linux"))]
mod clock_steps;
#[cfg(target_os = "linux")]
mod cycles;
#[cfg(unix)]
mod differential;
mod exchange;
#[cfg(all(feature = "binary", target_os = "linux"))]
mod faults;
#[cfg(all(feature = "binary", target_os = "linux"))]
mod killed_clients;
mod lifetime;
#[cfg(unix)]
mod offline;
#[cfg(feature = "binary")]
mod program;
mod recording;
mod replay;
mod replication;
mod sessions;
#[cfg(all(feature = "binary", unix))]
mod setting_pairs;
mod support;

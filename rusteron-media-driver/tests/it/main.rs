//! Embedded drivers and the program `media_driver`. Modules mirror `src/`.

#[cfg(all(unix, feature = "binary"))]
mod activity;
mod callbacks;
#[cfg(all(unix, feature = "binary"))]
mod checks;
#[cfg(all(target_os = "linux", feature = "binary"))]
mod clock_steps;
mod coverage;
#[cfg(all(target_os = "linux", feature = "binary"))]
mod dead_driver;
#[cfg(unix)]
mod hostile_cnc;
mod hostile_datagrams;
#[cfg(unix)]
mod java;
mod killed_clients;
mod loss;
mod media_driver;
mod network;
#[cfg(all(target_os = "linux", feature = "binary"))]
mod networks;
#[cfg(unix)]
mod overrun;
mod own_dir;
#[cfg(all(unix, feature = "binary"))]
/// The program `media_driver`.
mod program {
    mod configuration;
    mod problems;
    mod process;
}
#[cfg(target_os = "linux")]
mod segmentation_offload;
#[cfg(all(target_os = "linux", feature = "binary"))]
mod setting_pairs;
mod settings;

#[cfg(all(unix, feature = "binary"))]
const MEDIA_DRIVER: &str = env!("CARGO_BIN_EXE_media_driver");

//! The media driver.

use std::time::Duration;

use rusteron_client::{ErrorKind, IdleStrategyKind};
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, Loss, MediaDriver, Result, ThreadingMode};

use super::{PartOptions, accuse, fork};
use crate::clients::settings;
use crate::party::{Notice, Order, Orders, say};

/// The shares of datagrams that are lost.
const DATA_LOSS: f64 = 0.05;
const CONTROL_LOSS: f64 = 0.02;

/// How long to wait after a launch that was refused.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn play(options: &PartOptions, orders: &Orders) -> std::result::Result<(), Failure> {
    let driver = loop {
        match launch(options) {
            Ok(driver) => break driver,
            Err(error) if options.take_over && error.kind() == ErrorKind::StaleDirectory => {
                // The supervisor has waited for the end of the other driver.
                accuse("refused", 1, error.to_string());
                return Ok(());
            }
            Err(error) => say(&Notice::Refused(format!("{:?} {error}", error.kind()))),
        }
        if orders.wait(PAUSE) == Some(Order::End) {
            return Ok(());
        }
    };
    say(&Notice::Ready);
    loop {
        match orders.wait(Duration::from_secs(1)) {
            Some(Order::End) => break,
            // The child drops the driver.
            Some(Order::Fork) if fork() => return Ok(()),
            _ => {}
        }
    }
    driver.close()?;
    Ok(())
}

fn launch(options: &PartOptions) -> Result<MediaDriver> {
    let mut context = DriverContext::new()?;
    context
        .set_dir(&options.dir)?
        // Of a driver that was killed.
        .set_dir_delete_on_start(!options.take_over)?
        .set_dir_delete_on_shutdown(true)?
        .set_dir_warn_if_exists(false)?
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(IdleStrategyKind::Backoff)?
        .set_term_buffer_length(settings::TERM_LENGTH)?
        .set_ipc_term_buffer_length(settings::TERM_LENGTH)?
        // On a full file system, writing to a sparse file ends the process.
        .set_term_buffer_sparse_file(false)?
        .set_perform_storage_checks(true)?
        .set_timer_interval(settings::TIMER)?
        .set_client_liveness_timeout(settings::CLIENT_LIVENESS)?
        .set_counters_free_to_reuse_timeout(settings::COUNTER_REUSE)?
        .set_publication_unblock_timeout(settings::UNBLOCK)?
        .set_publication_linger_timeout(settings::LINGER)?
        .set_publication_connection_timeout(settings::IMAGE_LIVENESS)?
        .set_image_liveness_timeout(settings::IMAGE_LIVENESS)?
        .set_driver_timeout(settings::DRIVER_TIMEOUT)?
        .set_counters_buffer_length(1 << 20)?
        .set_error_buffer_length(1 << 22)?
        .set_loss_report_buffer_length(1 << 20)?;
    if options.loss {
        let seed = options.seed;
        let loss = Loss { data_rate: DATA_LOSS, control_rate: CONTROL_LOSS, seed };
        context.set_receive_loss(Some(loss))?;
    }
    MediaDriver::launch(context)
}

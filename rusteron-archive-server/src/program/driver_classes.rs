//! Settings of the media driver as Java's programs take them.

use std::env;

use rusteron_media_driver::program::Origins;
use rusteron_media_driver::{DriverContext, Setting};

use crate::java_names::driver_value;

/// Names of Java that differ from C's.
const RENAMED: &[(&str, &str)] =
    &[("AERON_NAME_RESOLVER_THRESHOLD", "AERON_DRIVER_NAME_RESOLVER_THRESHOLD")];

/// Replaces names and classes of Java's driver in the environment by those of C's. Returns the classes that nothing
/// stands for.
///
/// # Safety
/// There is no other thread.
pub(super) unsafe fn translate(origins: &Origins) -> Vec<String> {
    for (java, c) in RENAMED {
        let Some(value) = env::var_os(java) else { continue };
        // SAFETY: the caller guarantees that there is no other thread.
        unsafe { env::remove_var(java) };
        if env::var_os(c).is_none() {
            // SAFETY: as above.
            unsafe { env::set_var(c, value) };
        }
    }
    let mut errors = Vec::new();
    for variable in DriverContext::settings().map(Setting::variable) {
        let Ok(value) = env::var(variable) else { continue };
        match driver_value(variable, &value) {
            // SAFETY: as above.
            Ok(Some(name)) => unsafe { env::set_var(variable, name) },
            Ok(None) => {}
            Err(known) => {
                errors.push(format!("{}={value}: {known}", origins.describe(variable.as_ref())));
            }
        }
    }
    errors
}

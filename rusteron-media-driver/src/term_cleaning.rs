//! Stores with which a driver zeroes terms.

use rusteron_core::Result;
use rusteron_sys::driver as sys;

use crate::DriverContext;
use crate::enumerations::named;

named! {
    /// Stores with which the conductor zeroes terms that all subscribers have passed, for
    /// [`DriverContext::set_term_cleaning`] and for the option `--term-cleaning` of the program `media_driver`.
    #[derive(Default)]
    TermCleaning = rusteron_term_cleaning_t, "a term cleaning";
    /// Compares the other two every 16 pieces of 16 KiB or more, for a few microseconds, and uses the faster one. IPC
    /// terms have such pieces from 256 KiB on. Begins with [`Cached`](Self::Cached).
    #[default]
    Adaptive = "adaptive", rusteron_term_cleaning_enum_RUSTERON_TERM_CLEANING_ADAPTIVE;
    /// Ordinary stores, as Aeron's own drivers use. They fetch each line from the cache of the core that wrote it.
    Cached = "cached", rusteron_term_cleaning_enum_RUSTERON_TERM_CLEANING_CACHED;
    /// Non-temporal stores for pieces from 4 KiB on, which go to memory and fetch nothing.
    Streaming = "streaming", rusteron_term_cleaning_enum_RUSTERON_TERM_CLEANING_STREAMING;
}

impl DriverContext {
    /// Sets the stores with which the conductor zeroes terms. The default is [`TermCleaning::Adaptive`].
    ///
    /// A launch applies the setting to all drivers of the process. Only x86-64 has [`TermCleaning::Streaming`], where
    /// the C code is compiled by GCC or clang; elsewhere terms are zeroed by `memset`.
    ///
    /// # Errors
    /// None.
    ///
    /// The environment variable is `RUSTERON_TERM_CLEANING`. Aeron has no such setting.
    pub fn set_term_cleaning(&mut self, cleaning: TermCleaning) -> Result<&mut Self> {
        self.term_cleaning = cleaning;
        Ok(self)
    }

    /// Returns the stores with which the conductor zeroes terms.
    pub fn term_cleaning(&self) -> TermCleaning {
        self.term_cleaning
    }

    /// Tells C, for all drivers of the process.
    pub(crate) fn apply_term_cleaning(&self) {
        // SAFETY: C stores the values atomically, and drivers that are running read them so. The processor has stores
        // of that length.
        unsafe {
            sys::rusteron_set_term_cleaning(self.term_cleaning.to_raw(), max_store_length());
        }
    }
}

/// Returns the length in bytes of the processor's widest non-temporal stores.
fn max_store_length() -> usize {
    #[cfg(target_arch = "x86_64")]
    match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx")) {
        (true, _) => return 64,
        (_, true) => return 32,
        _ => {}
    }
    16
}

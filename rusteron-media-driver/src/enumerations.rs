//! Enumerations that Aeron's settings take.

use crate::names::{named, raw};

named! {
    /// How the driver's agents share threads: conductor, sender, receiver, and the native resource
    /// agent, which maps files and resolves names.
    ///
    /// Corresponds to `aeron_threading_mode_t`.
    #[doc(alias = "aeron_threading_mode_t")]
    ThreadingMode, "a threading mode";
    /// Four threads, one for each agent: the lowest latency, on three cores.
    Dedicated = "DEDICATED",
    /// Three threads: sender and receiver share one.
    SharedNetwork = "SHARED_NETWORK",
    /// One thread for all agents.
    Shared = "SHARED",
    /// No thread: the application invokes all agents itself.
    Invoker = "INVOKER",
}

raw! {
    ThreadingMode = aeron_threading_mode_t;
    Dedicated = aeron_threading_mode_enum_AERON_THREADING_MODE_DEDICATED,
    SharedNetwork = aeron_threading_mode_enum_AERON_THREADING_MODE_SHARED_NETWORK,
    Shared = aeron_threading_mode_enum_AERON_THREADING_MODE_SHARED,
    Invoker = aeron_threading_mode_enum_AERON_THREADING_MODE_INVOKER,
}

named! {
    /// Which names the driver gives to its threads.
    ///
    /// Corresponds to `aeron_thread_naming_t`.
    #[doc(alias = "aeron_thread_naming_t")]
    ThreadNaming, "a naming of threads";
    /// The roles: `conductor`, `sender`, `receiver`.
    Classic = "classic",
    /// Short names with a prefix: `aeron-md-cnd`, `aeron-md-snd`, `aeron-md-rcv`.
    New = "new",
}

raw! {
    ThreadNaming = aeron_thread_naming_t;
    Classic = aeron_thread_naming_enum_AERON_THREAD_NAMING_CLASSIC,
    New = aeron_thread_naming_enum_AERON_THREAD_NAMING_NEW,
}

named! {
    /// Yes, no, or whatever follows from the channel.
    ///
    /// Corresponds to `aeron_inferable_boolean_t`.
    #[doc(alias = "aeron_inferable_boolean_t")]
    InferableBoolean, "an inferable boolean";
    /// No.
    ForceFalse = "false",
    /// Yes.
    ForceTrue = "true",
    /// Whatever follows from the channel.
    Infer = "infer",
}

raw! {
    InferableBoolean = aeron_inferable_boolean_t;
    ForceFalse = aeron_inferable_boolean_enum_AERON_FORCE_FALSE,
    ForceTrue = aeron_inferable_boolean_enum_AERON_FORCE_TRUE,
    Infer = aeron_inferable_boolean_enum_AERON_INFER,
}

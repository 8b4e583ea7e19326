//! Enumerations that Aeron's settings take.

/// Declares an enumeration with [names](rusteron_core::named) that Aeron's settings take: each
/// variant has its constant in C, or the C function that is found by its name.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $type:ident = $c_type:ident, $what:literal;
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal, $constant:ident;)+
    ) => {
        ::rusteron_core::named! {
            $(#[$meta])*
            $type, $what;
            $($(#[$variant_meta])* $variant = $name,)+
        }

        impl $type {
            pub(crate) fn to_raw(self) -> ::rusteron_sys::driver::$c_type {
                match self {
                    $(Self::$variant => ::rusteron_sys::driver::$constant,)+
                }
            }

            /// C has only values that were converted, or that its own parser wrote.
            #[allow(dead_code, reason = "not every enumeration is read back")]
            pub(crate) fn from_raw(raw: ::rusteron_sys::driver::$c_type) -> Self {
                Self::ALL.iter().copied().find(|variant| variant.to_raw() == raw).unwrap_or(Self::ALL[0])
            }
        }
    };
    (
        $(#[$meta:meta])*
        $type:ident, $what:literal;
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal, $function:literal;)+
    ) => {
        ::rusteron_core::named! {
            $(#[$meta])*
            $type, $what;
            $($(#[$variant_meta])* $variant = $name,)+
        }

        impl $type {
            /// The names, and the C functions that they stand for.
            pub(crate) const FUNCTIONS: &[(&str, &str)] = &[$(($name, $function),)+];
        }
    };
}

pub(crate) use named;

named! {
    /// How the driver's agents share threads: conductor, sender, receiver, and the native resource
    /// agent, which maps files and resolves names.
    ///
    /// Corresponds to `aeron_threading_mode_t`.
    #[doc(alias = "aeron_threading_mode_t")]
    ThreadingMode = aeron_threading_mode_t, "a threading mode";
    /// Four threads, one for each agent: the lowest latency, on three cores.
    Dedicated = "DEDICATED", aeron_threading_mode_enum_AERON_THREADING_MODE_DEDICATED;
    /// Three threads: sender and receiver share one.
    SharedNetwork = "SHARED_NETWORK", aeron_threading_mode_enum_AERON_THREADING_MODE_SHARED_NETWORK;
    /// One thread for all agents.
    Shared = "SHARED", aeron_threading_mode_enum_AERON_THREADING_MODE_SHARED;
    /// No thread: the application invokes all agents itself.
    Invoker = "INVOKER", aeron_threading_mode_enum_AERON_THREADING_MODE_INVOKER;
}

named! {
    /// Which names the driver gives to its threads.
    ///
    /// Corresponds to `aeron_thread_naming_t`.
    #[doc(alias = "aeron_thread_naming_t")]
    ThreadNaming = aeron_thread_naming_t, "a naming of threads";
    /// The roles: `conductor`, `sender`, `receiver`.
    Classic = "classic", aeron_thread_naming_enum_AERON_THREAD_NAMING_CLASSIC;
    /// Short names with a prefix: `aeron-md-cnd`, `aeron-md-snd`, `aeron-md-rcv`.
    New = "new", aeron_thread_naming_enum_AERON_THREAD_NAMING_NEW;
}

named! {
    /// Yes, no, or whatever follows from the channel.
    ///
    /// Corresponds to `aeron_inferable_boolean_t`.
    #[doc(alias = "aeron_inferable_boolean_t")]
    InferableBoolean = aeron_inferable_boolean_t, "an inferable boolean";
    /// No.
    ForceFalse = "false", aeron_inferable_boolean_enum_AERON_FORCE_FALSE;
    /// Yes.
    ForceTrue = "true", aeron_inferable_boolean_enum_AERON_FORCE_TRUE;
    /// Whatever follows from the channel.
    Infer = "infer", aeron_inferable_boolean_enum_AERON_INFER;
}

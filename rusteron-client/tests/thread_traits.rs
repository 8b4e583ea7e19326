//! What threads may do with each type of the crate.

#[test]
fn what_threads_may_do_with_each_type_is_what_it_can_bear() {
    /// What is said of a type where the implementation beside, which goes first, does not apply.
    trait No {
        const SEND: bool = false;
        const SYNC: bool = false;
        const CLONE: bool = false;
        const DEFAULT: bool = false;
    }
    struct Sending<T>(T);
    struct Sharing<T>(T);
    struct Cloning<T>(T);
    struct Defaulting<T>(T);
    impl<T> No for Sending<T> {}
    impl<T> No for Sharing<T> {}
    impl<T> No for Cloning<T> {}
    impl<T> No for Defaulting<T> {}
    impl<T: Send> Sending<T> {
        const SEND: bool = true;
    }
    impl<T: Sync> Sharing<T> {
        const SYNC: bool = true;
    }
    impl<T: Clone> Cloning<T> {
        const CLONE: bool = true;
    }
    impl<T: Default> Defaulting<T> {
        const DEFAULT: bool = true;
    }
    macro_rules! traits_of {
        ($($name:ty: $expected:literal),* $(,)?) => {$(
            let mut traits = Vec::new();
            if <Sending<$name>>::SEND { traits.push("Send") }
            if <Sharing<$name>>::SYNC { traits.push("Sync") }
            if <Cloning<$name>>::CLONE { traits.push("Clone") }
            if <Defaulting<$name>>::DEFAULT { traits.push("Default") }
            assert_eq!(traits.join(" "), $expected, stringify!($name));
        )*};
    }
    use rusteron_client::*;
    // A type that is missing here is `Send` and `Sync` by itself, being made of numbers and texts.
    traits_of! {
        // Handles that keep their client open.
        Aeron: "Send Sync Clone",
        Publication: "Send Sync",
        ExclusivePublication: "Send",
        Subscription: "Send",
        Counter: "Send Sync",
        Registration<Publication>: "Send",
        Registration<ExclusivePublication>: "Send",
        Registration<Subscription>: "Send",
        Registration<Counter>: "Send",
        AsyncDestination: "Send",
        // What is borrowed from them.
        BufferClaim<'static>: "Send Sync",
        Image<'static>: "Send",
        Images<'static>: "Send",
        Header<'static>: "Clone",
        CountersReader<'static>: "Send Sync Clone",
        Counters<'static>: "Send Sync Clone",
        SubscriptionBuilder<'static>: "Send",
        // What owns memory or a mapping of its own.
        Context: "Send Sync",
        Handler: "Send Sync",
        CncFile: "Send Sync",
        FragmentAssembler: "Send Sync Default",
        ImageFragmentAssembler: "Send Sync Default",
        Error: "Send Sync Clone",
        // Values.
        ImageInfo: "Send Sync Clone",
        ImageConstants: "Send Sync Clone",
        PublicationConstants: "Send Sync Clone",
        SubscriptionConstants: "Send Sync Clone",
        CounterConstants: "Send Sync Clone",
        CncConstants: "Send Sync Clone",
        CounterSnapshot: "Send Sync Clone",
        StreamPosition: "Send Sync Clone",
        StreamPositions: "Send Sync Clone",
        ErrorLogEntry: "Send Sync Clone",
        LossReportEntry: "Send Sync Clone",
        Added: "Send Sync Clone",
        PublicationError: "Send Sync Clone",
        ChannelUri: "Send Sync Clone",
        ChannelUriBuilder: "Send Sync Clone",
        ChannelUriError: "Send Sync Clone",
        UncheckedChannel<'static>: "Send Sync Clone",
        OfferError: "Send Sync Clone",
        PollError: "Send Sync Clone",
        AnyIdleStrategy: "Send Sync Clone",
        Backoff: "Send Sync Clone Default",
        Sleeping: "Send Sync Clone Default",
    }
}

//! Programs that must not compile. Each is in `misuse/`, with the compiler's reason in the `.stderr`
//! file beside it.
//!
//! The words come from the compiler that the files were made with. `TRYBUILD=overwrite` makes them
//! again.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

/// The compiler's words for this depend on every field, so that it is asked without them: the type
/// parameter cannot be inferred if both implementations apply.
#[test]
fn what_one_thread_at_a_time_may_use_is_not_sync() {
    trait Inferred<T> {
        fn if_not_sync() {}
    }
    struct Sharable;
    impl<T> Inferred<()> for T {}
    impl<T: Sync> Inferred<Sharable> for T {}

    <rusteron_client::ExclusivePublication as Inferred<_>>::if_not_sync();
    <rusteron_client::Subscription as Inferred<_>>::if_not_sync();
    <rusteron_client::DestinationRegistration as Inferred<_>>::if_not_sync();
}

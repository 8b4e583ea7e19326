//! Misuse of handles, each with the error code of its refusal. rustdoc compiles the examples, and checks the codes
//! when it accepts unstable features, as in `.ci/run`.
//!
//! Two threads do not share a merge.
//!
//! ```compile_fail,E0277
//! use rusteron_archive::ReplayMerge;
//!
//! fn share(merge: &ReplayMerge) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| merge.is_merged());
//!     });
//! }
//! ```
//!
//! Two threads do not share a persistent subscription.
//!
//! ```compile_fail,E0277
//! use std::sync::Arc;
//!
//! use rusteron_archive::PersistentSubscription;
//!
//! fn share(subscription: Arc<PersistentSubscription>) {
//!     std::thread::spawn(move || subscription.is_live());
//! }
//! ```
//!
//! Two threads do not share a pending connection.
//!
//! ```compile_fail,E0277
//! use rusteron_archive::AsyncConnect;
//!
//! fn share(connection: &AsyncConnect) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| println!("{connection:?}"));
//!     });
//! }
//! ```

//! Misuse of handles, each with the error code of its refusal. rustdoc compiles the examples, and checks the codes
//! when it accepts unstable features, as in `.ci/run`.
//!
//! A claim is committed once.
//!
//! ```compile_fail,E0382
//! use rusteron_client::BufferClaim;
//!
//! fn commit(claim: BufferClaim<'_>) {
//!     claim.commit().unwrap();
//!     claim.abort();
//! }
//! ```
//!
//! A claim does not outlive its publication.
//!
//! ```compile_fail,E0515
//! use rusteron_client::{BufferClaim, Publication};
//!
//! fn claim(publication: Publication) -> BufferClaim<'static> {
//!     publication.try_claim(8).unwrap()
//! }
//! ```
//!
//! A notification of the conductor owns its captures.
//!
//! ```compile_fail,E0373
//! use rusteron_client::Publication;
//!
//! fn close(publication: Publication) {
//!     let mut is_closed = false;
//!     publication.close_with(|| is_closed = true);
//! }
//! ```
//!
//! A shared publication closes only through its last owner.
//!
//! ```compile_fail,E0507
//! use std::sync::Arc;
//!
//! use rusteron_client::Publication;
//!
//! fn close(publication: Arc<Publication>) {
//!     let other = Arc::clone(&publication);
//!     std::thread::spawn(move || other.offer(b"message"));
//!     publication.close();
//! }
//! ```
//!
//! An image handler owns its captures.
//!
//! ```compile_fail,E0373
//! use rusteron_client::Aeron;
//!
//! fn count(aeron: &Aeron) {
//!     let mut images = 0;
//!     let _ = aeron
//!         .subscription_builder("aeron:ipc", 1001)
//!         .on_available_image(|_| images += 1)
//!         .add();
//! }
//! ```
//!
//! An exclusive publication has one claim at a time.
//!
//! ```compile_fail,E0499
//! use rusteron_client::ExclusivePublication;
//!
//! fn offer(publication: &mut ExclusivePublication) {
//!     let claim = publication.try_claim(8).unwrap();
//!     publication.offer(b"behind").unwrap();
//!     claim.abort();
//! }
//! ```
//!
//! A publication does not close under its claim.
//!
//! ```compile_fail,E0505
//! use rusteron_client::Publication;
//!
//! fn close(publication: Publication) {
//!     let claim = publication.try_claim(8).unwrap();
//!     publication.close();
//!     claim.abort();
//! }
//! ```
//!
//! A counters reader does not leave its handler.
//!
//! ```compile_fail,E0521
//! use std::sync::Mutex;
//!
//! use rusteron_client::{Aeron, CountersReader, Handler};
//!
//! fn keep(aeron: &Aeron, kept: &'static Mutex<Option<CountersReader<'static>>>) -> Handler {
//!     aeron.add_available_counter_handler(move |counters, _, _| {
//!         *kept.lock().unwrap() = Some(*counters);
//!     })
//! }
//! ```
//!
//! A slice of a claim ends with the commit.
//!
//! ```compile_fail,E0505
//! use rusteron_client::BufferClaim;
//!
//! fn commit(mut claim: BufferClaim<'_>) {
//!     let slice = &mut claim[..];
//!     claim.commit().unwrap();
//!     slice[0] = 1;
//! }
//! ```
//!
//! A claim gives one mutable slice at a time.
//!
//! ```compile_fail,E0499
//! use rusteron_client::BufferClaim;
//!
//! fn fill(claim: &mut BufferClaim<'_>) {
//!     let one: &mut [u8] = claim;
//!     let two: &mut [u8] = claim;
//!     one.copy_from_slice(two);
//! }
//! ```
//!
//! Two threads do not share a subscription.
//!
//! ```compile_fail,E0277
//! use rusteron_client::Subscription;
//!
//! fn share(subscription: &Subscription) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| subscription.is_connected());
//!     });
//! }
//! ```
//!
//! Two threads do not share an exclusive publication.
//!
//! ```compile_fail,E0277
//! use std::sync::Arc;
//!
//! use rusteron_client::ExclusivePublication;
//!
//! fn share(publication: Arc<ExclusivePublication>) {
//!     std::thread::spawn(move || publication.is_connected());
//! }
//! ```
//!
//! Two threads do not share an image.
//!
//! ```compile_fail,E0277
//! use rusteron_client::Image;
//!
//! fn share(image: &Image<'_>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| image.session_id());
//!     });
//! }
//! ```
//!
//! Two threads do not share a request.
//!
//! ```compile_fail,E0277
//! use rusteron_client::{Publication, Registration};
//!
//! fn share(request: &Registration<Publication>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| request.registration_id());
//!     });
//! }
//! ```
//!
//! A header stays on the polling thread.
//!
//! ```compile_fail,E0277
//! use rusteron_client::Header;
//!
//! fn pass_on(header: &Header<'_>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| header.position());
//!     });
//! }
//! ```
//!
//! The messages of a batch stay on the polling thread.
//!
//! ```compile_fail,E0277
//! use rusteron_client::Messages;
//!
//! fn pass_on(messages: &mut Messages<'_>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(move || messages.count());
//!     });
//! }
//! ```
//!
//! A handle that is dropped at once is a warning.
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! use rusteron_client::{Aeron, Result};
//!
//! fn subscribe(aeron: &Aeron) -> Result<()> {
//!     aeron.add_subscription("aeron:ipc", 1001)?;
//!     Ok(())
//! }
//! ```

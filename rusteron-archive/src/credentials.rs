//! Credentials of a client.

use std::ffi::c_void;
use std::slice;

use rusteron_core::CredentialsSupplier;
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::Retained;
use rusteron_core::ffi::callback::run;
use rusteron_sys::archive as sys;

/// Maximum length of credentials. With the longest channel, more bytes would not fit into a
/// request.
pub(crate) const MAX_LENGTH: usize = 3 * 1024;

/// A supplier, and the error that kept it from supplying.
pub(crate) struct Supplier {
    supplier: Box<dyn CredentialsSupplier>,
    failure: Option<Error>,
}

/// The structure that C gets, followed by the bytes that it points to.
#[repr(C)]
struct Encoded {
    raw: sys::aeron_archive_encoded_credentials_t,
    _bytes: Vec<u8>,
}

impl Supplier {
    pub(crate) fn new(supplier: impl CredentialsSupplier + 'static) -> Self {
        Self { supplier: Box::new(supplier), failure: None }
    }

    /// Returns and clears the reason why empty credentials replaced the supplier's.
    pub(crate) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Returns credentials for C, which gives them back to [`on_free`]. Without credentials, the
    /// bytes are empty.
    fn supply(
        &mut self,
        ask: impl FnOnce(&mut dyn CredentialsSupplier) -> Vec<u8>,
    ) -> *mut sys::aeron_archive_encoded_credentials_t {
        let mut supplied = None;
        run("credentials supplier", || supplied = Some(ask(&mut *self.supplier)));
        let bytes = check(supplied).unwrap_or_else(|error| {
            self.failure = Some(error);
            Vec::new()
        });
        let length = bytes.len() as u32;
        let data = bytes.as_ptr().cast();
        let raw = sys::aeron_archive_encoded_credentials_t { data, length };
        Box::into_raw(Box::new(Encoded { raw, _bytes: bytes })).cast()
    }
}

fn check(supplied: Option<Vec<u8>>) -> Result<Vec<u8>> {
    let bytes = supplied
        .ok_or_else(|| Error::new(ErrorKind::Other, "the supplier of credentials panicked"))?;
    if bytes.len() > MAX_LENGTH {
        let length = bytes.len();
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("credentials of {length} bytes; the maximum is {MAX_LENGTH}"),
        ));
    }
    Ok(bytes)
}

/// # Safety
/// `clientd` comes from a live `Retained<Supplier>` with no other user.
pub(crate) unsafe extern "C" fn encoded_credentials(
    clientd: *mut c_void,
) -> *mut sys::aeron_archive_encoded_credentials_t {
    // SAFETY: C passes the `clientd` that it was given, one call at a time; the context retains the supplier.
    let supplier = unsafe { Retained::<Supplier>::exclusive(clientd) };
    supplier.supply(|supplier| supplier.encoded_credentials())
}

/// # Safety
/// As for [`encoded_credentials`]; the challenge is live.
pub(crate) unsafe extern "C" fn on_challenge(
    challenge: *mut sys::aeron_archive_encoded_credentials_t,
    clientd: *mut c_void,
) -> *mut sys::aeron_archive_encoded_credentials_t {
    // SAFETY: as in `encoded_credentials`.
    let supplier = unsafe { Retained::<Supplier>::exclusive(clientd) };
    // SAFETY: C's own, live during the call, and as long as it says.
    let challenge = unsafe {
        match challenge.as_ref() {
            Some(challenge) if !challenge.data.is_null() => {
                slice::from_raw_parts(challenge.data.cast::<u8>(), challenge.length as usize)
            }
            _ => &[],
        }
    };
    supplier.supply(|supplier| supplier.on_challenge(challenge))
}

/// # Safety
/// `credentials` is null, or came from one of the functions above and was not freed.
pub(crate) unsafe extern "C" fn on_free(
    credentials: *mut sys::aeron_archive_encoded_credentials_t,
    _clientd: *mut c_void,
) {
    if !credentials.is_null() {
        // SAFETY: by the contract it was leaked in `supply`, as an `Encoded`, which begins with it.
        drop(unsafe { Box::from_raw(credentials.cast::<Encoded>()) });
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    struct FixedLength(usize);

    impl CredentialsSupplier for FixedLength {
        fn encoded_credentials(&mut self) -> Vec<u8> {
            vec![7; self.0]
        }

        fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
            assert_ne!(encoded_challenge, b"fatal");
            [encoded_challenge, b"!"].concat()
        }
    }

    fn retained(length: usize) -> Retained<Supplier> {
        Retained::new(Box::new(Supplier::new(FixedLength(length))))
    }

    fn failure(supplier: &Retained<Supplier>) -> Option<Error> {
        // SAFETY: the supplier lives, and has no other user.
        unsafe { Retained::<Supplier>::exclusive(supplier.clientd()) }.take_failure()
    }

    fn challenge(supplier: &Retained<Supplier>, text: &[u8]) -> Vec<u8> {
        let mut challenge = sys::aeron_archive_encoded_credentials_t {
            data: text.as_ptr().cast(),
            length: text.len() as u32,
        };
        // SAFETY: both live; what comes back is as long as it says, and is freed once.
        unsafe {
            let encoded = on_challenge(&mut challenge, supplier.clientd());
            let length = (*encoded).length as usize;
            let answer = slice::from_raw_parts((*encoded).data.cast::<u8>(), length).to_vec();
            on_free(encoded, supplier.clientd());
            answer
        }
    }

    #[test]
    fn challenge_is_answered() {
        let supplier = retained(0);
        assert_eq!(challenge(&supplier, b"who"), b"who!");
        assert!(failure(&supplier).is_none());
        // SAFETY: C does this where there was nothing to supply.
        unsafe { on_free(ptr::null_mut(), supplier.clientd()) };
    }

    #[test]
    fn panic_gives_empty_credentials() {
        let supplier = retained(0);
        assert_eq!(challenge(&supplier, b"fatal"), b"");
        assert!(failure(&supplier).expect("a failure").message().contains("panicked"));
    }

    #[test]
    fn long_credentials_are_not_sent() {
        for (length, is_sent) in [(MAX_LENGTH, true), (MAX_LENGTH + 1, false)] {
            let supplier = retained(length);
            // SAFETY: the supplier is retained, and used by this call only; C's structure is freed once.
            let sent = unsafe {
                let encoded = encoded_credentials(supplier.clientd());
                let sent = (*encoded).length as usize;
                on_free(encoded, supplier.clientd());
                sent
            };
            assert_eq!(sent == length, is_sent);
            assert_eq!(failure(&supplier).is_none(), is_sent);
        }
    }
}

//! Channels to members, requests for streams, and messages behind a header.

use std::io::IoSlice;

use rusteron_client::{
    ChannelUri, Error, ErrorKind, OfferError, Parameter, Position, Publisher, Registration,
    Resource,
};
use rusteron_core::channel::{AsChannel, ChannelText, ChannelUse};

/// Returns the ingress channel with the endpoint of a member, if there is one, checked for a
/// publication.
pub(crate) fn ingress_channel(
    ingress: &ChannelUri,
    endpoint: Option<&str>,
) -> Result<String, Error> {
    let with = |endpoint| ingress.to_builder().set(Parameter::Endpoint, endpoint).build();
    // Only the media driver's name resolver knows whether a name without a port is valid. The other
    // parameters are checked as if it were.
    let name = endpoint.filter(|endpoint| is_name(endpoint));
    let uri = match endpoint {
        Some(endpoint) => with(if name.is_some() { "localhost:1" } else { endpoint })?,
        None => ingress.clone(),
    };
    uri.to_c_string(ChannelUse::Publication)?;
    let text = uri.to_string();
    Ok(match name {
        Some(name) => ChannelText::new(&text).with("endpoint", name).to_string(),
        None => text,
    })
}

/// Returns whether an endpoint has no port, nor anything else than the letters of a name.
pub(crate) fn is_name(endpoint: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !endpoint.is_empty() && endpoint.chars().all(is_of_name)
}

/// Polls a request for a stream, and makes the request if there is none. A failure ends the request,
/// so that the next call makes another.
pub(crate) fn poll_or_request<R: Resource>(
    pending: &mut Option<Registration<R>>,
    request: impl FnOnce() -> Result<Registration<R>, Error>,
) -> Result<Option<R>, Error> {
    let mut registration = pending.take().map_or_else(request, Ok)?;
    let added = registration.poll()?;
    if added.is_none() {
        *pending = Some(registration);
    }
    Ok(added)
}

/// Returns whether a request to the media driver may succeed if it is repeated.
pub(crate) fn is_temporary(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceTemporarilyUnavailable
            | ErrorKind::BufferFull
            | ErrorKind::DriverBufferFull
    )
}

/// Offers the parts of a message behind a header. Allocates unless there are fewer than `N` parts.
#[inline]
pub(crate) fn offer_behind<const N: usize>(
    header: &[u8],
    publication: &mut impl Publisher,
    parts: &[IoSlice<'_>],
) -> Result<Position, OfferError> {
    if parts.len() < N {
        let mut all = [IoSlice::new(header); N];
        // `IoSlice` is `Copy`, but its lifetime is that of the array.
        for (target, part) in all[1..].iter_mut().zip(parts) {
            *target = IoSlice::new(part);
        }
        return publication.offer_parts(&all[..=parts.len()]);
    }
    offer_many_behind(header, publication, parts)
}

#[cold]
fn offer_many_behind(
    header: &[u8],
    publication: &mut impl Publisher,
    parts: &[IoSlice<'_>],
) -> Result<Position, OfferError> {
    let parts = parts.iter().map(|part| IoSlice::new(part));
    let all: Vec<_> = [IoSlice::new(header)].into_iter().chain(parts).collect();
    publication.offer_parts(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(ingress: &str, endpoint: &str) -> Result<String, String> {
        let ingress = ingress.parse().expect("a channel");
        ingress_channel(&ingress, Some(endpoint)).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_left_to_the_driver() {
        let named = |ingress| channel(ingress, "node-0.cluster_a");
        assert_eq!(named("aeron:udp?").as_deref(), Ok("aeron:udp?endpoint=node-0.cluster_a"));
        let expected = "aeron:udp?term-length=64k|endpoint=node-0.cluster_a";
        assert_eq!(named("aeron:udp?endpoint=x:9|term-length=64k").as_deref(), Ok(expected));
        assert_eq!(channel("aeron:udp?", "a:1").as_deref(), Ok("aeron:udp?endpoint=a:1"));
    }

    #[test]
    fn other_faults_are_found() {
        for (ingress, endpoint, text) in [
            ("aeron:udp?", "a:b", "port"),
            ("aeron:udp?", "a:99999", "port"),
            ("aeron:udp?", "a b", "endpoint"),
            ("aeron:udp?", "a|mtu=1k", "endpoint"),
            ("aeron:udp?", "", "endpoint"),
            ("aeron:udp?mtu=7", "node", "mtu"),
        ] {
            let error = channel(ingress, endpoint).expect_err(endpoint);
            assert!(error.contains(text), "{endpoint}: {error}");
        }
    }
}

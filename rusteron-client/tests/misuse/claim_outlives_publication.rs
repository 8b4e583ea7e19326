use rusteron_client::{BufferClaim, Publication};

fn claim(publication: Publication) -> BufferClaim<'static> {
    publication.try_claim(8).unwrap()
}

fn main() {}

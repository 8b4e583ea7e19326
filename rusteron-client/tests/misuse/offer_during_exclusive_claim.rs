use rusteron_client::ExclusivePublication;

fn offer(publication: &mut ExclusivePublication) {
    let claim = publication.try_claim(8).unwrap();
    publication.offer(b"behind").unwrap();
    claim.abort();
}

fn main() {}

use rusteron_client::Publication;

fn close(publication: Publication) {
    let claim = publication.try_claim(8).unwrap();
    publication.close();
    claim.abort();
}

fn main() {}

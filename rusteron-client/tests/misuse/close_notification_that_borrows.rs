use rusteron_client::Publication;

fn close(publication: Publication) {
    let mut is_closed = false;
    publication.close_with(|| is_closed = true);
}

fn main() {}

use std::sync::Arc;

use rusteron_client::Publication;

fn close(publication: Arc<Publication>) {
    let other = Arc::clone(&publication);
    std::thread::spawn(move || other.offer(b"message"));
    publication.close();
}

fn main() {}

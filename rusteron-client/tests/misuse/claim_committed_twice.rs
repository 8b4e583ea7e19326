use rusteron_client::BufferClaim;

fn commit(claim: BufferClaim<'_>) {
    claim.commit().unwrap();
    claim.abort();
}

fn main() {}

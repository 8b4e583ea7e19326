use rusteron_client::BufferClaim;

fn commit(mut claim: BufferClaim<'_>) {
    let slice = &mut claim[..];
    claim.commit().unwrap();
    slice[0] = 1;
}

fn main() {}

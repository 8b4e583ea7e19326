use rusteron_client::BufferClaim;

fn fill(claim: &mut BufferClaim<'_>) {
    let one: &mut [u8] = claim;
    let two: &mut [u8] = claim;
    one.copy_from_slice(two);
}

fn main() {}

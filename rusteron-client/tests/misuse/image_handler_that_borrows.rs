use rusteron_client::Aeron;

fn count(aeron: &Aeron) {
    let mut images = 0;
    let _ = aeron
        .subscription_builder("aeron:ipc", 1001)
        .on_available_image(|_| images += 1)
        .add();
}

fn main() {}

//! Changes to a file that another process has mapped.

use crate::input::Input;

/// Bytes that are written at an offset.
#[derive(Debug)]
pub struct Patch {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A number at one of the offsets: near the value there, `found`, or at the limits, or any; or any bytes.
pub fn patch(input: &mut Input<'_>, offset: u64, found: impl FnOnce(u64) -> i32) -> Patch {
    let bytes = match input.byte() % 4 {
        0 => {
            let unit = input.choose(&[1, 32, 64 << 10]);
            input.near(found(offset), unit).to_le_bytes().to_vec()
        }
        1 => input.long().to_le_bytes().to_vec(),
        2 => vec![input.byte()],
        _ => {
            let length = usize::from(input.byte());
            input.bytes(length).to_vec()
        }
    };
    Patch { offset, bytes }
}

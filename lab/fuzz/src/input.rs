//! Reads numbers and choices from the fuzzer's input.

use arbitrary::Unstructured;

/// The fuzzer's bytes, read from front to back; after their end everything is zero.
///
/// `arbitrary`'s derived implementations take lengths from the end of the bytes, so that no seed could be written by
/// hand. Here a byte stands for the same thing wherever the input ends.
#[derive(Debug)]
pub struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub fn half(&mut self) -> u16 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub fn word(&mut self) -> i32 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub fn long(&mut self) -> i64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// As many bytes as are asked for, or as are left.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let length = length.min(self.0.len());
        self.0.bytes(length).unwrap_or_default()
    }

    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// A number near a base in steps of a unit, or a number at the limits, or any number. 0 is the base, 1 the
    /// number before the base, 2 the number after it.
    pub fn near(&mut self, base: i32, unit: i32) -> i32 {
        match self.byte() {
            0xff => self.word(),
            0xfe => i32::MAX,
            0xfd => i32::MIN,
            0xfc => 0,
            0xfb => base ^ i32::MIN,
            0xfa => base.wrapping_add(i32::from(self.half() as i16).wrapping_mul(unit)),
            small => {
                let magnitude = i32::from(small / 2).wrapping_mul(unit);
                match small % 2 {
                    0 => base.wrapping_add(magnitude),
                    _ => base.wrapping_sub(magnitude.wrapping_add(unit)),
                }
            }
        }
    }
}

/// Bytes that are written at an offset of a file that another process has mapped.
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

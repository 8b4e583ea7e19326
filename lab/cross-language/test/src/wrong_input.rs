//! Malformed and unusual requests, on which the decoders of all languages agree, and right ones
//! before and after.

use cross_language::modes::bytes;

/// Labels and messages, in hexadecimal digits. The first field, `08`, is the correlation id.
const MESSAGES: &str = "
create 0801 3204 0828 1002
no_field
no_operation 0802
operation_of_later_version 0803 7a00
field_of_later_version 0804 1801 9a060100
field_of_later_version_in_argument 0805 3a06 0801 1000 1809
fields_in_another_order 1801 0806
two_operations 0807 1801 220161
two_correlation_ids 08ff01 0808 1801
group_of_later_version 0809 1801 9b06 9c06
group_without_end 080a 1801 9b06
end_without_group 080b 1801 9c06
tag_truncated 080c 1801 9a
correlation_id_truncated 08
varint_truncated 080d 1880
varint_of_11_bytes 080e 18 ffffffffffffffffffff01
varint_longer_than_needed 080f 18 818000
field_0 0810 1801 0201ff
wire_type_6 0811 1801 9e0600
wire_type_7 0812 1801 9f0600
length_beyond_the_end 0813 2205 666f7572
length_2_31 0814 22 8080808008 66
length_2_32 0815 22 8080808010 66
length_2_63 0816 22 80808080808080808001 66
text_not_utf_8 0817 2201 ff
text_surrogate 0818 2203 eda080
text_overlong 0819 2202 c080
text_cut_in_character 081a 2201 c3
callback_error_not_utf_8 081b 7201 ff
integers_not_packed 081c 5206 0801 0802 0803
integers_packed_in_parts 081d 5207 0a0101 0a020203
integers_length_beyond_the_end 081e 5202 0a05
integers_last_truncated 081f 5203 0a0180
argument_truncated 0820 3a03 0801 10
object_unknown 0821 3a02 0802
squares_negative 0822 58 ffffffffffffffffff01
callback_result_without_call 0823 6801
callback_error_without_call 0824 720161
value_without_kind 0825 4a00
value_of_later_kind 0826 4a02 4200
value_of_two_kinds 0827 4a04 1001 1807
value_boolean_2 0828 4a02 1002
list_with_value_without_kind 0829 4a04 3202 0a00
map_key_twice 082a 4a14 3a12 0a07 0a0161 1202 1801 0a07 0a0161 1202 1802
map_key_not_utf_8 082b 4a0b 3a09 0a07 0a01ff 1202 1801
map_key_u0000 082c 4a0b 3a09 0a07 0a0100 1202 1801
map_member_without_key 082d 4a08 3a06 0a04 1202 1801
map_member_without_value 082e 4a07 3a05 0a03 0a0161
ping_with_field_of_later_version 082f 1203 980601
value_with_field_of_later_version 0830 4a05 1802 980601
";

/// Returns messages with their labels.
pub fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let digits = |line: &str| bytes(&line.replace(' ', "")).expect("digits");
    let lines = MESSAGES.trim().lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    let mut messages: Vec<_> = lines.map(|(label, line)| (label, digits(line))).collect();
    // A list in a list, with more messages than decoders nest.
    let mut value = digits("0a00");
    for field in [0x32, 0x0a].repeat(60) {
        value = [&[field][..], &varint(value.len()), &value].concat();
    }
    messages.push((
        "depth_of_120_messages",
        [&digits("0831 62")[..], &varint(value.len()), &value].concat(),
    ));
    // Nothing of the above has changed the object.
    messages.push(("call", digits("0832 3a02 0801")));
    messages
}

/// Returns a length below 2^14.
fn varint(length: usize) -> Vec<u8> {
    match length {
        0..128 => vec![length as u8],
        _ => vec![length as u8 | 0x80, (length >> 7) as u8],
    }
}

//! Messages of a cluster. An input is a message; what is decoded is encoded and decoded again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_cluster::codec::{LAYOUTS, MessageHeader, SCHEMA_ID, decode_values, encode_values};

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode_values(bytes);
    let header = MessageHeader::split(bytes).map(|(header, _)| header);
    let is_known = header.is_some_and(|header| {
        let template_id = header.template_id;
        header.schema_id == SCHEMA_ID
            && LAYOUTS.iter().any(|layout| layout.template_id == template_id)
    });
    let Some((template_id, fields, data)) = decoded else { return };
    assert!(is_known, "{header:?}");
    let layout = LAYOUTS.iter().find(|layout| layout.template_id == template_id);
    let layout = layout.expect("the template is known");
    assert_eq!((fields.len(), data.len()), (layout.fields.len(), layout.data.len()));
    let total: usize = data.iter().map(|data| data.len()).sum();
    assert!(total <= bytes.len(), "more data than bytes");

    let encoded = encode_values(template_id, &fields, &data).expect("values in their ranges");
    let lengths = data.len() * size_of::<u32>() + total;
    let block_length = usize::from(layout.block_length);
    assert_eq!(encoded.len(), MessageHeader::LENGTH + block_length + lengths);
    assert_eq!(decode_values(&encoded), Some((template_id, fields, data)));
});

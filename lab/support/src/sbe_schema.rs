//! Tables of SBE messages and mark files, against Aeron's schemas.

use std::collections::BTreeMap;
use std::fs;

use roxmltree::{Document, Node};
use rusteron_core::sbe::{DataKind, FieldKind, Layout, MessageHeader};

use crate::{aeron_source, skip};

/// A type of the schema that a field can have.
#[derive(Clone, Copy)]
struct Type {
    kind: FieldKind,
    null: i64,
    /// Whether the schema gives the type a name.
    is_primitive: bool,
}

/// Returns the text of a schema in Aeron's tree. `None` if the tree does not have it: the test is over.
pub fn aeron_schema(path: &str) -> Option<String> {
    let file = aeron_source().join(path);
    let text = fs::read_to_string(&file).ok();
    if text.is_none() {
        skip("RUSTERON_REQUIRE_DRIFT_TESTS", &format!("there is no {}", file.display()));
    }
    text
}

/// Compares a table with a schema: its id and version, and the messages of the table. Returns the ids of messages that
/// the table does not have.
///
/// `absent` is the value of a field of a later version than the sender's, if programs do not use the null value of its
/// primitive type.
pub fn compare_messages(
    schema: &str,
    [id, version]: [u16; 2],
    layouts: &[Layout],
    absent: Option<i64>,
) -> Vec<u16> {
    let document = Document::parse(schema).expect("XML");
    let schema = document.root_element();
    assert_eq!(schema.attribute("byteOrder"), Some("littleEndian"));
    assert_eq!([number(schema, "id"), number(schema, "version")], [id, version]);
    let types = types(schema);
    let mut messages: BTreeMap<u16, Node<'_, '_>> =
        elements(schema, "message").map(|message| (number(message, "id"), message)).collect();
    for layout in layouts {
        let id = layout.template_id;
        let message = messages.remove(&id);
        let message = message.unwrap_or_else(|| panic!("no message {id}, or twice in the table"));
        compare(layout, message, &types, absent);
    }
    messages.into_keys().collect()
}

fn compare(
    layout: &Layout,
    message: Node<'_, '_>,
    types: &BTreeMap<String, Type>,
    absent: Option<i64>,
) {
    let name = layout.name;
    // One message of the schemas begins with a small letter.
    let schema_name = message.attribute("name").expect("a name");
    assert!(schema_name.eq_ignore_ascii_case(name), "{schema_name}: {name}");
    let fields: Vec<_> = elements(message, "field").collect();
    assert_eq!(fields.len(), layout.fields.len(), "{name}");
    let mut block_length = 0;
    for (field, expected) in fields.iter().zip(layout.fields) {
        let place = format!("{name}.{}", expected.name);
        let type_name = field.attribute("type").expect("a type");
        let field_type = *types.get(type_name).unwrap_or_else(|| panic!("{place}: {type_name}"));
        let is_later = field_type.is_primitive && expected.since > 0;
        let null = absent.filter(|_| is_later).unwrap_or(field_type.null);
        assert_eq!(field.attribute("name"), Some(&*camel_case(expected.name)), "{place}");
        assert_eq!(field.attribute("offset"), None, "{place}");
        assert_eq!(field_type.kind, expected.kind, "{place}");
        assert_eq!(null, expected.null, "{place}");
        assert_eq!(since(*field), expected.since, "{place}");
        block_length += expected.kind.length();
    }
    assert_eq!(layout.block_length, block_length, "{name}");

    let data: Vec<_> = elements(message, "data").collect();
    assert_eq!(data.len(), layout.data.len(), "{name}");
    for (data, expected) in data.iter().zip(layout.data) {
        let place = format!("{name}.{}", expected.name);
        let kind = match data.attribute("type") {
            Some("varAsciiEncoding") => DataKind::Ascii,
            Some("varDataEncoding") => DataKind::Bytes,
            other => panic!("{place}: {other:?}"),
        };
        assert_eq!(data.attribute("name"), Some(&*camel_case(expected.name)), "{place}");
        assert_eq!((kind, since(*data)), (expected.kind, expected.since), "{place}");
    }
    assert_eq!(elements(message, "group").count(), 0, "{name}");
}

/// Returns the names and codes of an enumeration.
pub fn enumeration(schema: &str, name: &str) -> Vec<(String, i64)> {
    let document = Document::parse(schema).expect("XML");
    let values = declared(document.root_element())
        .filter(|node| node.attribute("name") == Some(name))
        .flat_map(|node| elements(node, "validValue"));
    values
        .map(|value| {
            let code = value.text().expect("a code").parse().expect("a number");
            (value.attribute("name").expect("a name").to_owned(), code)
        })
        .collect()
}

/// Compares the bytes of a mark file's header with the schema of its only message, by numbers and texts under the
/// schema's names. Returns the names of fields and texts that a version later than 0 has added, with the version.
pub fn compare_mark_file(
    schema: &str,
    bytes: &[u8],
    mut numbers: BTreeMap<&str, i64>,
    mut texts: BTreeMap<&str, &str>,
) -> BTreeMap<String, u16> {
    let document = Document::parse(schema).expect("XML");
    let schema = document.root_element();
    assert_eq!(schema.attribute("byteOrder"), Some("littleEndian"));
    let mut messages = elements(schema, "message");
    let message = messages.next().expect("a message");
    assert!(messages.next().is_none());
    let expected = MessageHeader {
        block_length: number(message, "blockLength"),
        template_id: number(message, "id"),
        schema_id: number(schema, "id"),
        version: number(schema, "version"),
    };
    assert_eq!(MessageHeader::split(bytes).map(|(header, _)| header), Some(expected));

    let types = types(schema);
    let mut later = BTreeMap::new();
    let mut end = 0;
    for field in elements(message, "field") {
        let name = field.attribute("name").expect("a name");
        let length = usize::from(types[field.attribute("type").expect("a type")].kind.length());
        let offset = field.attribute("offset");
        let offset = offset.map_or(end, |offset| offset.parse().expect("a number"));
        let mut value = [0; 8];
        value[..length].copy_from_slice(&bytes[MessageHeader::LENGTH + offset..][..length]);
        assert_eq!(numbers.remove(name), Some(i64::from_le_bytes(value)), "{name}");
        later.insert(name.to_owned(), since(field));
        end = offset + length;
    }
    assert!(numbers.is_empty(), "{numbers:?}");

    let mut offset = MessageHeader::LENGTH + usize::from(expected.block_length);
    for data in elements(message, "data") {
        let name = data.attribute("name").expect("a name");
        assert_eq!(data.attribute("type"), Some("varAsciiEncoding"), "{name}");
        let length = u32::from_le_bytes(*bytes[offset..].first_chunk().expect("a length"));
        offset += size_of::<u32>();
        let text = &bytes[offset..][..length as usize];
        assert_eq!(texts.remove(name).map(str::as_bytes), Some(text), "{name}");
        offset += length as usize;
        later.insert(name.to_owned(), since(data));
    }
    assert!(texts.is_empty(), "{texts:?}");
    assert!(bytes[offset..].iter().all(|byte| *byte == 0));
    later.retain(|_, since| *since > 0);
    later
}

/// Returns the types that fields can have: primitive types, named types, and enumerations. Positive numbers with a
/// sign alone.
fn types(schema: Node<'_, '_>) -> BTreeMap<String, Type> {
    let mut types = BTreeMap::new();
    for primitive in ["int32", "int64"] {
        types.insert(primitive.to_owned(), primitive_type(primitive));
    }
    for node in declared(schema) {
        let primitive = match node.tag_name().name() {
            "type" => node.attribute("primitiveType"),
            "enum" => node.attribute("encodingType"),
            _ => None,
        };
        let (Some(name), Some(primitive @ ("int32" | "int64"))) =
            (node.attribute("name"), primitive)
        else {
            continue;
        };
        let mut declared = Type { is_primitive: false, ..primitive_type(primitive) };
        if let Some(null) = node.attribute("nullValue") {
            declared.null = null.parse().expect("a number");
        }
        types.insert(name.to_owned(), declared);
    }
    types
}

fn primitive_type(name: &str) -> Type {
    let is_primitive = true;
    match name {
        "int32" => Type { kind: FieldKind::I32, null: i32::MIN.into(), is_primitive },
        _ => Type { kind: FieldKind::I64, null: i64::MIN, is_primitive },
    }
}

fn declared<'a>(schema: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    elements(schema, "types").flat_map(|types| types.children()).filter(Node::is_element)
}

fn elements<'a>(node: Node<'a, 'a>, name: &str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn since(node: Node<'_, '_>) -> u16 {
    node.attribute("sinceVersion").map_or(0, |version| version.parse().expect("a number"))
}

fn number(node: Node<'_, '_>, name: &str) -> u16 {
    node.attribute(name).expect("an attribute").parse().expect("a number")
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (initial, rest) = word.split_at(1);
        text + &initial.to_ascii_uppercase() + rest
    })
}

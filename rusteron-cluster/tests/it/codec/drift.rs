//! The table of messages is that of Aeron's schema.

mod mark_file;

use std::collections::BTreeMap;
use std::fs;

use roxmltree::{Document, Node};
use rusteron_cluster::__private::{
    DataKind, FieldKind, LAYOUTS, Layout, SCHEMA_ID, SCHEMA_VERSION,
};
use rusteron_test_support::{aeron_source, skip_drift_test};

const SCHEMA: &str = "aeron-cluster/src/main/resources/cluster/aeron-cluster-codecs.xml";

/// A type of the schema that a field can have.
#[derive(Clone, Copy)]
struct Type {
    kind: FieldKind,
    null: i64,
}

#[test]
fn messages_are_those_of_aerons_schema() {
    let file = aeron_source().join(SCHEMA);
    let Ok(text) = fs::read_to_string(&file) else {
        return skip_drift_test(&format!("there is no {}", file.display()));
    };
    let document = Document::parse(&text).expect("XML");
    let schema = document.root_element();
    assert_eq!(schema.attribute("id"), Some(&*SCHEMA_ID.to_string()));
    assert_eq!(schema.attribute("version"), Some(&*SCHEMA_VERSION.to_string()));
    assert_eq!(schema.attribute("byteOrder"), Some("littleEndian"));
    let types = types(schema);
    for layout in LAYOUTS {
        compare(layout, message(schema, layout), &types);
    }
}

fn message<'a>(schema: Node<'a, 'a>, layout: &Layout) -> Node<'a, 'a> {
    let id = layout.template_id.to_string();
    schema
        .children()
        .find(|node| node.tag_name().name() == "message" && node.attribute("id") == Some(&*id))
        .unwrap_or_else(|| panic!("no message {id} in the schema"))
}

fn compare(layout: &Layout, message: Node<'_, '_>, types: &BTreeMap<String, Type>) {
    let name = layout.name;
    // One message of the schema begins with a small letter.
    let schema_name = message.attribute("name").expect("a name");
    assert!(schema_name.eq_ignore_ascii_case(name), "{schema_name}: {name}");
    let fields: Vec<_> = elements(message, "field").collect();
    assert_eq!(fields.len(), layout.fields.len(), "{name}");
    let mut block_length = 0;
    for (field, expected) in fields.iter().zip(layout.fields) {
        let place = format!("{name}.{}", expected.name);
        let type_name = field.attribute("type").expect("a type");
        let field_type = *types.get(type_name).unwrap_or_else(|| panic!("{place}: {type_name}"));
        assert_eq!(field.attribute("name"), Some(&*camel_case(expected.name)), "{place}");
        assert_eq!(field_type.kind, expected.kind, "{place}");
        assert_eq!(field_type.null, expected.null, "{place}");
        assert_eq!(since(field), expected.since, "{place}");
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
        assert_eq!((kind, since(data)), (expected.kind, expected.since), "{place}");
    }
    assert_eq!(elements(message, "group").count(), 0, "{name}");
}

/// Returns the types that fields can have: primitive types, named types, and enumerations.
fn types(schema: Node<'_, '_>) -> BTreeMap<String, Type> {
    let mut types = BTreeMap::new();
    for primitive in ["int32", "int64"] {
        types.insert(primitive.to_owned(), primitive_type(primitive));
    }
    let declared = elements(schema, "types").flat_map(|types| types.children());
    for node in declared.filter(Node::is_element) {
        let primitive = match node.tag_name().name() {
            "type" => node.attribute("primitiveType"),
            "enum" => node.attribute("encodingType"),
            _ => None,
        };
        let (Some(name), Some("int32" | "int64")) = (node.attribute("name"), primitive) else {
            continue;
        };
        let mut declared = primitive_type(primitive.expect("matched above"));
        if let Some(null) = node.attribute("nullValue") {
            declared.null = null.parse().expect("a number");
        }
        types.insert(name.to_owned(), declared);
    }
    types
}

fn primitive_type(name: &str) -> Type {
    match name {
        "int32" => Type { kind: FieldKind::I32, null: i32::MIN.into() },
        _ => Type { kind: FieldKind::I64, null: i64::MIN },
    }
}

fn elements<'a>(node: Node<'a, 'a>, name: &str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn since(node: &Node<'_, '_>) -> u16 {
    node.attribute("sinceVersion").map_or(0, |version| version.parse().expect("a number"))
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (initial, rest) = word.split_at(1);
        text + &initial.to_ascii_uppercase() + rest
    })
}

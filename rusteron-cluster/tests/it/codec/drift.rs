//! The table of messages is that of Aeron's schema.

use std::collections::BTreeMap;
use std::fs;

use roxmltree::{Document, Node};
use rusteron_cluster::codec::mark_file::{ComponentType, HEADER_LENGTH, MarkFileHeader};
use rusteron_cluster::codec::{
    DataKind, FieldKind, LAYOUTS, Layout, MessageHeader, SCHEMA_ID, SCHEMA_VERSION,
};
use rusteron_test_support::{aeron_source, skip};

const DRIFT: &str = "RUSTERON_REQUIRE_DRIFT_TESTS";
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
        return skip(DRIFT, &format!("there is no {}", file.display()));
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

const MARK_FILE_SCHEMA: &str =
    "aeron-cluster/src/main/resources/cluster/aeron-cluster-mark-codecs.xml";

/// A header whose fields all differ.
fn header(component_type: ComponentType) -> MarkFileHeader {
    MarkFileHeader {
        version: 3 << 8 | 1,
        component_type,
        activity_timestamp: 0x0102_0304_0506_0708,
        start_timestamp: 0x1112_1314_1516_1718,
        pid: 0x2122_2324_2526_2728,
        candidate_term_id: 0x3132_3334_3536_3738,
        archive_stream_id: 110,
        service_stream_id: 111,
        consensus_module_stream_id: 112,
        ingress_stream_id: 113,
        member_id: 114,
        service_id: 115,
        header_length: 116,
        error_buffer_length: 117,
        cluster_id: 118,
        aeron_dir: "/dev/shm/node".to_owned(),
        control_channel: "aeron:ipc".to_owned(),
        ingress_channel: "aeron:udp".to_owned(),
        service_name: "orders".to_owned(),
        authenticator: "password".to_owned(),
        services_cluster_dir: "elsewhere".to_owned(),
    }
}

/// Numbers and texts of a header, by their names in the schema.
fn by_name(header: &MarkFileHeader, code: i64) -> (BTreeMap<&str, i64>, BTreeMap<&str, &str>) {
    let numbers = BTreeMap::from([
        ("version", header.version.into()),
        ("componentType", code),
        ("activityTimestamp", header.activity_timestamp),
        ("startTimestamp", header.start_timestamp),
        ("pid", header.pid),
        ("candidateTermId", header.candidate_term_id),
        ("archiveStreamId", header.archive_stream_id.into()),
        ("serviceStreamId", header.service_stream_id.into()),
        ("consensusModuleStreamId", header.consensus_module_stream_id.into()),
        ("ingressStreamId", header.ingress_stream_id.into()),
        ("memberId", header.member_id.into()),
        ("serviceId", header.service_id.into()),
        ("headerLength", header.header_length.into()),
        ("errorBufferLength", header.error_buffer_length.into()),
        ("clusterId", header.cluster_id.into()),
    ]);
    let texts = BTreeMap::from([
        ("aeronDirectory", &*header.aeron_dir),
        ("controlChannel", &*header.control_channel),
        ("ingressChannel", &*header.ingress_channel),
        ("serviceName", &*header.service_name),
        ("authenticator", &*header.authenticator),
        ("servicesClusterDir", &*header.services_cluster_dir),
    ]);
    (numbers, texts)
}

#[test]
fn mark_file_is_that_of_aerons_schema() {
    let file = aeron_source().join(MARK_FILE_SCHEMA);
    let Ok(text) = fs::read_to_string(&file) else {
        return skip(DRIFT, &format!("there is no {}", file.display()));
    };
    let document = Document::parse(&text).expect("XML");
    let schema = document.root_element();
    assert_eq!(schema.attribute("byteOrder"), Some("littleEndian"));
    let mut messages = elements(schema, "message");
    let message = messages.next().expect("a message");
    assert!(messages.next().is_none());
    let number = |node: roxmltree::Node<'_, '_>, name: &str| -> u16 {
        node.attribute(name).expect("an attribute").parse().expect("a number")
    };
    let expected = MessageHeader {
        block_length: number(message, "blockLength"),
        template_id: number(message, "id"),
        schema_id: number(schema, "id"),
        version: number(schema, "version"),
    };
    let types = types(schema);
    let declared = elements(schema, "types").flat_map(|types| types.children());
    let component_types = declared
        .filter(|node| node.attribute("name") == Some("ClusterComponentType"))
        .flat_map(|node| elements(node, "validValue"));
    let mut count = 0;
    for value in component_types {
        let component_type = match value.attribute("name") {
            Some("UNKNOWN") => ComponentType::Unknown,
            Some("CONSENSUS_MODULE") => ComponentType::ConsensusModule,
            Some("CONTAINER") => ComponentType::Container,
            Some("BACKUP") => ComponentType::Backup,
            Some("STANDBY") => ComponentType::Standby,
            other => panic!("{other:?}"),
        };
        count += 1;
        let code = value.text().expect("a code").parse().expect("a number");
        let header = header(component_type);
        let (mut numbers, mut texts) = by_name(&header, code);
        let bytes = header.encode().expect("short texts");
        assert_eq!(bytes.len(), HEADER_LENGTH);
        assert_eq!(MessageHeader::split(&bytes).map(|(header, _)| header), Some(expected));
        let mut offset = MessageHeader::LENGTH;
        for field in elements(message, "field") {
            let name = field.attribute("name").expect("a name");
            let length = usize::from(types[field.attribute("type").expect("a type")].kind.length());
            let mut value = [0; 8];
            value[..length].copy_from_slice(&bytes[offset..][..length]);
            assert_eq!(numbers.remove(name), Some(i64::from_le_bytes(value)), "{name}");
            assert_eq!(since(&field), 0, "{name}");
            offset += length;
        }
        assert!(numbers.is_empty(), "{numbers:?}");
        offset = MessageHeader::LENGTH + usize::from(expected.block_length);
        let mut names = Vec::new();
        for data in elements(message, "data") {
            let name = data.attribute("name").expect("a name");
            assert_eq!(data.attribute("type"), Some("varAsciiEncoding"), "{name}");
            let length = u32::from_le_bytes(*bytes[offset..].first_chunk().expect("a length"));
            offset += 4;
            let text = &bytes[offset..][..length as usize];
            assert_eq!(texts.remove(name).map(str::as_bytes), Some(text), "{name}");
            offset += length as usize;
            names.push((name, since(&data)));
        }
        assert!(texts.is_empty(), "{texts:?}");
        assert!(bytes[offset..].iter().all(|byte| *byte == 0));
        // Version 0 of the schema has all but the last text. Rust's own tests read such a header.
        assert_eq!(names.pop(), Some(("servicesClusterDir", 1)));
        assert!(names.iter().all(|(_, since)| *since == 0), "{names:?}");
        assert_eq!(MarkFileHeader::decode(&bytes), Ok(header));
    }
    assert_eq!(count, 5);
}

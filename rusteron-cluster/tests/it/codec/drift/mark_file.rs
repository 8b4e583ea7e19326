//! The header of a mark file is that of Aeron's schema.

use std::collections::BTreeMap;
use std::fs;

use roxmltree::Document;
use rusteron_cluster::__private::{ComponentType, HEADER_LENGTH, MarkFileHeader, MessageHeader};
use rusteron_test_support::{aeron_source, skip_drift_test};

use super::{elements, since, types};

const SCHEMA: &str = "aeron-cluster/src/main/resources/cluster/aeron-cluster-mark-codecs.xml";

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
    let file = aeron_source().join(SCHEMA);
    let Ok(text) = fs::read_to_string(&file) else {
        return skip_drift_test(&format!("there is no {}", file.display()));
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

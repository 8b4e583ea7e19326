//! The table of messages is that of Aeron's schema, and so are mark files.

use std::collections::BTreeMap;

use rusteron_cluster::codec::mark_file::{ComponentType, HEADER_LENGTH, MarkFileHeader};
use rusteron_cluster::codec::{LAYOUTS, SCHEMA_ID, SCHEMA_VERSION};
use rusteron_test_support::sbe_schema::{
    aeron_schema, compare_mark_file, compare_messages, enumeration,
};

const SCHEMA: &str = "aeron-cluster/src/main/resources/cluster/aeron-cluster-codecs.xml";
const MARK_FILE_SCHEMA: &str =
    "aeron-cluster/src/main/resources/cluster/aeron-cluster-mark-codecs.xml";

#[test]
fn messages_are_those_of_aerons_schema() {
    let Some(schema) = aeron_schema(SCHEMA) else { return };
    // The other messages are those of consensus modules among themselves.
    let _ = compare_messages(&schema, [SCHEMA_ID, SCHEMA_VERSION], LAYOUTS, None);
}

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
    let Some(schema) = aeron_schema(MARK_FILE_SCHEMA) else { return };
    let component_types = [
        ("UNKNOWN", ComponentType::Unknown),
        ("CONSENSUS_MODULE", ComponentType::ConsensusModule),
        ("CONTAINER", ComponentType::Container),
        ("BACKUP", ComponentType::Backup),
        ("STANDBY", ComponentType::Standby),
    ];
    let codes = enumeration(&schema, "ClusterComponentType");
    assert_eq!(codes.len(), component_types.len());
    for (name, code) in codes {
        let known = component_types.iter().find(|(known, _)| *known == name);
        let (_, component_type) = *known.unwrap_or_else(|| panic!("{name}"));
        let header = header(component_type);
        let (numbers, texts) = by_name(&header, code);
        let bytes = header.encode().expect("short texts");
        assert_eq!(bytes.len(), HEADER_LENGTH);
        let later = compare_mark_file(&schema, &bytes, numbers, texts);
        // Rust's own tests read a header of version 0.
        assert_eq!(later, BTreeMap::from([("servicesClusterDir".to_owned(), 1)]));
        assert_eq!(MarkFileHeader::decode(&bytes), Ok(header));
    }
}

//! The codecs write and read the same bytes as Aeron's own codecs in Java.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use rusteron_cluster::codec::{
    DataKind, FieldKind, LAYOUTS, Layout, MessageHeader, SCHEMA_VERSION, decode_values,
    encode_values,
};
use rusteron_test_support::{Random, has_java, java_run};

const ROUNDS: usize = 200;

/// The schema's version in Aeron 1.51.0, Maven's release.
const MAVEN_VERSION: u16 = 16;

struct Message {
    layout: &'static Layout,
    fields: Vec<i64>,
    data: Vec<Vec<u8>>,
}

impl Message {
    /// The fields that a version has. Later fields stand behind them.
    fn known_fields(&self, version: u16) -> &[i64] {
        let known = self.layout.fields.iter().take_while(|field| field.since <= version);
        &self.fields[..known.count()]
    }

    /// Changes the version in the header, and removes the fields that the version does not have.
    fn in_version(&self, version: u16, mut bytes: Vec<u8>) -> Vec<u8> {
        let unknown = &self.layout.fields[self.known_fields(version).len()..];
        let length: u16 = unknown.iter().map(|field| field.kind.length()).sum();
        let block_length = self.layout.block_length - length;
        let end = MessageHeader::LENGTH + usize::from(block_length);
        bytes.drain(end..end + usize::from(length));
        bytes[..2].copy_from_slice(&block_length.to_le_bytes());
        bytes[6..8].copy_from_slice(&version.to_le_bytes());
        bytes
    }
}

#[test]
fn same_bytes_as_java_in_both_directions() {
    if has_java() {
        compare(MAVEN_VERSION, "maven");
    }
}

#[cfg(unix)]
#[test]
#[ignore = "compiles Aeron's Java code once: just test-cluster"]
fn same_bytes_as_compiled_java() {
    if has_java() && rusteron_test_support::cluster::has_compiled_aeron() {
        compare(SCHEMA_VERSION, "compiled");
    }
}

/// Compares with the Java code of a release of Aeron, which has a version of the schema.
fn compare(java_version: u16, release: &str) {
    let mut random = Random::new(17);
    let messages: Vec<Message> =
        (0..ROUNDS).flat_map(|_| LAYOUTS).map(|layout| message(layout, &mut random)).collect();
    let input: String = messages.iter().map(line).collect();
    let output = run(input, release);
    let answers: Vec<&str> = output.lines().collect();
    assert_eq!(answers.len(), messages.len(), "{output}");
    for (message, answer) in messages.iter().zip(answers) {
        let [encoded, fields, data] = answer.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{answer}");
        };
        // Java decodes the bytes of Rust.
        let name = message.layout.name;
        let known = message.known_fields(java_version);
        assert_eq!(fields, joined(known), "{name}");
        assert_eq!(data, joined(message.data.iter().map(|data| hex(data))), "{name}");
        // Java encodes the same bytes, but for the version of the schema.
        let java = bytes(encoded);
        assert_eq!(java[6..8], java_version.to_le_bytes(), "{name}");
        let rust = encode(message);
        assert_eq!(rust[6..8], SCHEMA_VERSION.to_le_bytes(), "{name}");
        assert_eq!(hex(&java), hex(&message.in_version(java_version, rust)), "{name}");
        // Rust decodes the bytes of Java.
        let data: Vec<&[u8]> = message.data.iter().map(Vec::as_slice).collect();
        let unknown = message.layout.fields[known.len()..].iter().map(|field| field.null);
        let fields = known.iter().copied().chain(unknown).collect();
        let expected = (message.layout.template_id, fields, data);
        assert_eq!(decode_values(&java), Some(expected), "{name}");
    }
}

fn message(layout: &'static Layout, random: &mut Random) -> Message {
    let field = |name: &str, kind: FieldKind, random: &mut Random| {
        let bytes = random.bytes(8).try_into().expect("8 bytes");
        // Java refuses values that an enumeration does not have.
        match (name, kind) {
            ("code", _) => random.below(5) as i64,
            ("request_type", _) => 0,
            ("response_code" | "close_reason" | "action" | "mark" | "time_unit", _) => {
                random.below(3) as i64
            }
            ("is_startup" | "is_standby" | "ack_required", _) => random.below(2) as i64,
            (_, FieldKind::I32) => i64::from(i64::from_le_bytes(bytes) as i32),
            (_, FieldKind::I64) => i64::from_le_bytes(bytes),
        }
    };
    let data = |kind: DataKind, random: &mut Random| {
        let length = random.below(40);
        let mut bytes = random.bytes(length);
        if kind == DataKind::Ascii {
            bytes.iter_mut().for_each(|byte| *byte &= 0x7f);
        }
        bytes
    };
    Message {
        layout,
        fields: layout.fields.iter().map(|x| field(x.name, x.kind, random)).collect(),
        data: layout.data.iter().map(|x| data(x.kind, random)).collect(),
    }
}

fn encode(message: &Message) -> Vec<u8> {
    let data: Vec<&[u8]> = message.data.iter().map(Vec::as_slice).collect();
    let bytes = encode_values(message.layout.template_id, &message.fields, &data).expect("values");
    assert!(bytes.len() >= MessageHeader::LENGTH);
    bytes
}

/// A line of input for `ClusterCodecs.java`.
fn line(message: &Message) -> String {
    format!(
        "{} {} {} {}\n",
        message.layout.template_id,
        joined(&message.fields),
        joined(message.data.iter().map(|data| hex(data))),
        hex(&encode(message)),
    )
}

/// Runs the program with the input on a release of Aeron, and returns its output.
fn run(input: String, release: &str) -> String {
    let mut java = Command::new(java_run())
        .args(["ClusterCodecs.java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Xshare:auto"])
        .env("RUSTERON_JAVA_AERON", release)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("lab/java/run starts");
    let mut stdin = java.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = java.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("the program reads its input");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn joined<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    if values.is_empty() { "-".to_owned() } else { values.join(",") }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

//! Malformed requests, and right ones before and after.

use cross_language::{Body, ENVELOPE_LENGTH, Envelope, Operation, Status, Template, Value};

/// Returns messages with their labels.
pub fn messages() -> Vec<(String, Vec<u8>)> {
    let mut all = Messages::default();
    let create = Body::CreateObject { initial_value: 40, amount: 2 };
    all.body("create", Operation::Create, &create, |_| {});
    all.envelopes();
    all.bodies();
    all.values();
    // Nothing of the above has changed the object.
    let call = Body::CallObject { object_id: 1, amount: 0 };
    all.body("call", Operation::Call, &call, |_| {});
    all.messages
}

#[derive(Default)]
struct Messages {
    messages: Vec<(String, Vec<u8>)>,
    next_id: i64,
}

/// Where a body's block, or its first length, begins.
const BLOCK: usize = ENVELOPE_LENGTH + 8;
/// Where the first node of a value begins.
const NODE: usize = BLOCK + 4;

impl Messages {
    fn raw(&mut self, label: &str, message: &[u8]) {
        self.messages.push((label.to_owned(), message.to_vec()));
    }

    fn envelope(&mut self, operation: u8) -> Vec<u8> {
        self.next_id += 1;
        let template = Template::Request;
        let mut message = Vec::new();
        Envelope { template, correlation_id: self.next_id, code: operation }.write(&mut message);
        message
    }

    /// A binary request, changed.
    fn body(
        &mut self,
        label: &str,
        operation: Operation,
        body: &Body,
        change: impl FnOnce(&mut Vec<u8>),
    ) {
        let mut message = self.envelope(operation as u8);
        body.write(&mut message).expect("a body within the limits");
        change(&mut message);
        self.raw(label, &message);
    }

    fn envelopes(&mut self) {
        let mut whole = self.envelope(Operation::Ping as u8);
        Body::Void.write(&mut whole).expect("nothing");
        let mut changed = |label: &str, at: usize, bytes: &[u8]| {
            let mut message = whole.clone();
            message[at..at + bytes.len()].copy_from_slice(bytes);
            self.raw(label, &message);
        };
        changed("envelope_block_short", 0, &[15, 0]);
        changed("envelope_block_long", 0, &[0x60, 0xea]);
        changed("envelope_template_unknown", 2, &[99, 0]);
        changed("envelope_template_response", 2, &[Template::Response as u8, 0]);
        changed("envelope_template_callback", 2, &[Template::CallbackRequest as u8, 0]);
        changed("envelope_template_body", 2, &[11, 0]);
        changed("envelope_schema", 4, &[0xbc, 0x0b]);
        changed("envelope_version_later", 6, &[7, 0]);
        changed("operation_0", 16, &[0]);
        changed("operation_12", 16, &[12]);
        changed("operation_255", 16, &[255]);
        self.raw("message_of_1_byte", &whole[..1]);
        self.raw("header_truncated", &whole[..7]);
        self.raw("envelope_truncated", &whole[..ENVELOPE_LENGTH - 1]);
        let mut longer = whole.clone();
        longer[0] = 20;
        longer.splice(ENVELOPE_LENGTH..ENVELOPE_LENGTH, [1, 2, 3, 4]);
        self.raw("envelope_block_of_later_version", &longer);

        for (label, status) in [("ok", Status::Ok), ("failed", Status::CallbackFailed)] {
            let mut message = Vec::new();
            let template = Template::CallbackResponse;
            Envelope::answer(template, 77, status).write(&mut message);
            Body::Integer(1).write(&mut message).expect("an integer");
            self.raw(&format!("callback_response_{label}_without_call"), &message);
        }
    }

    fn bodies(&mut self) {
        let integer = Body::Integer(1);
        self.body("body_missing", Operation::Successor, &integer, |m| m.truncate(ENVELOPE_LENGTH));
        self.body("body_header_truncated", Operation::Successor, &integer, |m| {
            m.truncate(BLOCK - 1)
        });
        self.body("integer_truncated", Operation::Successor, &integer, |m| m.truncate(BLOCK + 7));
        self.body("integer_trailing", Operation::Successor, &integer, |m| m.push(0));
        self.body("integer_schema", Operation::Successor, &integer, |m| m[BLOCK - 4] = 0);
        self.body("integer_block_short", Operation::Successor, &integer, |m| {
            m[ENVELOPE_LENGTH] = 7;
            m.pop();
        });
        self.body("integer_block_of_later_version", Operation::Successor, &integer, |m| {
            m[ENVELOPE_LENGTH] = 9;
            m.push(0);
        });
        self.body("void_with_integer", Operation::Ping, &integer, |_| {});
        self.body("text_for_integer", Operation::Successor, &Body::Text("1".into()), |_| {});

        let text = Body::Text("four".into());
        self.body("text_truncated", Operation::Reverse, &text, |m| m.truncate(BLOCK + 2));
        self.body("text_length_more", Operation::Reverse, &text, |m| m[BLOCK] = 5);
        self.body("text_length_less", Operation::Reverse, &text, |m| m[BLOCK] = 3);
        self.body("text_length_2_31", Operation::Reverse, &text, |m| m[BLOCK + 3] = 0x80);
        self.body("text_length_2_32", Operation::Reverse, &text, |m| m[BLOCK..BLOCK + 4].fill(255));
        self.body("text_not_utf_8", Operation::Reverse, &text, |m| m[BLOCK + 4] = 0xff);
        self.body("text_surrogate", Operation::Reverse, &text, |m| {
            m[BLOCK + 4..BLOCK + 7].copy_from_slice(&[0xed, 0xa0, 0x80]);
        });
        self.body("text_cut_in_character", Operation::Reverse, &text, |m| m[BLOCK + 7] = 0xc3);

        let integers = Body::Integers(vec![1, 2, 3]);
        self.body("integers_count_more", Operation::Total, &integers, |m| m[BLOCK + 2] = 4);
        self.body("integers_count_less", Operation::Total, &integers, |m| m[BLOCK + 2] = 2);
        self.body("integers_count_65535", Operation::Total, &integers, |m| {
            m[BLOCK + 2..BLOCK + 4].fill(255);
        });
        self.body("integers_entry_0", Operation::Total, &integers, |m| m[BLOCK] = 0);
        self.body("integers_entry_7", Operation::Total, &integers, |m| m[BLOCK] = 7);
        self.body("integers_truncated", Operation::Total, &integers, |m| {
            m.pop();
        });
        self.body("integers_without_group", Operation::Total, &integers, |m| m.truncate(BLOCK + 3));

        let call = Body::CallObject { object_id: 1, amount: 1_000 };
        self.body("call_truncated", Operation::Call, &call, |m| m.truncate(BLOCK + 15));
        self.body("call_trailing", Operation::Call, &call, |m| m.push(0));
        self.body("call_for_create", Operation::Create, &call, |_| {});
        let call = Body::CallObject { object_id: 2, amount: 1_000 };
        self.body("object_unknown", Operation::Call, &call, |_| {});
    }

    /// Trees of nodes.
    fn values(&mut self) {
        let text = |text: &str| Value::Text(text.to_owned());
        let operation = Operation::Transform;
        let list = Body::Value(Value::List(vec![Value::Bool(true), text("text")]));
        self.body("nodes_none", operation, &list, |m| {
            m.truncate(NODE);
            m[BLOCK + 2] = 0;
        });
        self.body("nodes_count_more", operation, &list, |m| m[BLOCK + 2] = 4);
        self.body("nodes_count_less", operation, &list, |m| m[BLOCK + 2] = 2);
        self.body("nodes_entry_15", operation, &list, |m| m[BLOCK] = 15);
        self.body("nodes_children_more", operation, &list, |m| m[NODE + 4] = 3);
        self.body("nodes_children_less", operation, &list, |m| m[NODE + 4] = 1);
        self.body("nodes_children_2_32", operation, &list, |m| m[NODE + 4..NODE + 8].fill(255));
        self.body("nodes_truncated", operation, &list, |m| {
            m.pop();
        });
        self.body("nodes_trailing", operation, &list, |m| m.push(0));
        let child = NODE + 16 + 2 + 4;
        self.body("node_kind_7", operation, &list, |m| m[child] = 7);
        self.body("node_bool_2", operation, &list, |m| m[child + 8] = 2);
        self.body("node_key_length_more", operation, &list, |m| {
            m[child + 16..child + 18].fill(255)
        });
        let last = child + 16 + 2 + 4 + 16 + 2;
        self.body("node_text_length_2_32", operation, &list, |m| m[last..last + 4].fill(255));
        self.body("node_text_not_utf_8", operation, &list, |m| m[last + 4] = 0x80);
        for (label, number) in
            [("nan", f64::NAN), ("infinity", f64::INFINITY), ("minus_infinity", -f64::INFINITY)]
        {
            let number = Body::Value(Value::Number(number));
            self.body(&format!("node_{label}"), operation, &number, |_| {});
        }
        let map = Value::Map([("a".to_owned(), Value::Null), ("b".to_owned(), Value::Null)].into());
        let second_key = NODE + 2 * (16 + 2 + 4) + 1 + 16 + 2;
        let map = Body::Value(map);
        self.body("map_keys_equal", operation, &map, |m| m[second_key] = b'a');
        self.body("map_key_not_utf_8", operation, &map, |m| m[second_key] = 0xff);
        self.body("map_key_u0000", operation, &map, |m| m[second_key] = 0);
        let deep = (0..64).fold(Value::Null, |value, _| Value::List(vec![value]));
        self.body("depth_65", operation, &Body::Value(deep), |_| {});
    }
}

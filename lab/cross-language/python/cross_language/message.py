"""Messages in the layout of ``schema.xml``: an envelope of 24 bytes, and a body.

The types of Python stand for the kinds of bodies: ``None``, ``int``, ``str``, ``list[int]``, pairs of ``int`` for the
kinds with two fields, and for dynamically typed values ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and
``dict``.
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from struct import Struct
from typing import Any, NamedTuple

from .contract import DEPTH_LIMIT, LIST_LIMIT, NODE_LIMIT, SCHEMA_ID, SCHEMA_VERSION, Kind, Malformed

NO_CORRELATION_ID = -1
"""The correlation id of a response to a message without a readable envelope."""

_BLOCK_LENGTH = 16
# Header: block length, template, schema, version. Block: correlation id, operation or status.
_ENVELOPE = Struct("<4HqB7x")
_HEADER = Struct("<4H")
_INTEGER = Struct("<4Hq")
_PAIR = Struct("<4Hqq")
_TEXT = Struct("<4HI")
_GROUP = Struct("<HH")
# Kind, number of children, bits; behind the block the key's length.
_NODE = Struct("<B3xIq")
_NODE_AND_KEY_LENGTH = Struct("<B3xIqH")
_BITS = Struct("<q")
_NUMBER = Struct("<d")
_U16 = Struct("<H")
_U32 = Struct("<I")

_VOID = _HEADER.pack(0, Kind.VOID, SCHEMA_ID, SCHEMA_VERSION)
_INTEGERS = _HEADER.pack(0, Kind.INTEGERS, SCHEMA_ID, SCHEMA_VERSION)
_VALUE = _HEADER.pack(0, Kind.VALUE, SCHEMA_ID, SCHEMA_VERSION)
_EMPTY_LENGTH = _U32.pack(0)

_NULL, _BOOLEAN, _INTEGER_NODE, _NUMBER_NODE, _TEXT_NODE, _LIST, _MAP = range(7)


class Template(IntEnum):
    """The kind of a message."""

    REQUEST = 1
    RESPONSE = 2
    CALLBACK_REQUEST = 3
    CALLBACK_RESPONSE = 4


_TEMPLATES = {template.value: template for template in Template}


class Envelope(NamedTuple):
    """The fields that all four templates have at the same offsets."""

    template: Template
    correlation_id: int
    code: int
    """Number of the operation in a request, number of the status in responses."""

    def write(self) -> bytes:
        """Returns the bytes before the body."""
        template, correlation_id, code = self
        return _ENVELOPE.pack(_BLOCK_LENGTH, template, SCHEMA_ID, SCHEMA_VERSION, correlation_id, code)

    @staticmethod
    def read(message: bytes) -> tuple[Envelope, int]:
        """Returns the envelope of a message, and where the body begins. Raises ``Malformed``."""
        if len(message) < _ENVELOPE.size:
            raise Malformed(f"a message of {len(message)} bytes")
        block_length, number, schema_id, _version, correlation_id, code = _ENVELOPE.unpack_from(message)
        template = _TEMPLATES.get(number)
        if schema_id != SCHEMA_ID or template is None:
            raise Malformed(f"template {number} of schema {schema_id}")
        start = _HEADER.size + block_length
        if block_length < _BLOCK_LENGTH or start > len(message):
            raise Malformed(f"block length {block_length} in a message of {len(message)} bytes")
        return Envelope(template, correlation_id, code), start


def write(kind: Kind, body: Any) -> bytes:
    """Returns the bytes of a body. Raises ``Malformed``."""
    try:
        if kind is Kind.VOID:
            return _VOID
        if kind is Kind.INTEGER:
            return _INTEGER.pack(8, kind, SCHEMA_ID, SCHEMA_VERSION, body)
        if kind is Kind.TEXT:
            text: bytes = body.encode()
            return _TEXT.pack(0, kind, SCHEMA_ID, SCHEMA_VERSION, len(text)) + text
        if kind is Kind.INTEGERS:
            count = len(body)
            if count > LIST_LIMIT:
                raise Malformed(f"{count} elements: at most {LIST_LIMIT}")
            return b"".join((_INTEGERS, _GROUP.pack(8, count), struct.pack(f"<{count}q", *body)))
        if kind is Kind.VALUE:
            return _write_value(body)
        return _PAIR.pack(16, kind, SCHEMA_ID, SCHEMA_VERSION, *body)
    except (struct.error, UnicodeEncodeError) as error:
        raise Malformed(str(error)) from error


def _write_value(value: Any) -> bytes:
    parts: list[bytes] = []
    _write_node(parts, b"", value)
    # Each node is one part.
    if len(parts) > NODE_LIMIT:
        raise Malformed(f"{len(parts)} elements: at most {NODE_LIMIT}")
    return b"".join((_VALUE, _GROUP.pack(_NODE.size, len(parts)), *parts))


def _write_node(parts: list[bytes], key: bytes, value: Any) -> None:
    if len(key) >= 0xFFFF:
        raise Malformed(f"a key of {len(key)} bytes: at most 65534")
    kind = type(value)
    if kind is str:
        text = value.encode()
        node = _NODE_AND_KEY_LENGTH.pack(_TEXT_NODE, 0, 0, len(key))
        parts.append(b"".join((node, key, _U32.pack(len(text)), text)))
        return
    children: Any = ()
    if kind is int:
        number, bits = _INTEGER_NODE, value
    elif kind is float:
        number, (bits,) = _NUMBER_NODE, _BITS.unpack(_NUMBER.pack(value))
    elif kind is bool:
        number, bits = _BOOLEAN, int(value)
    elif value is None:
        number, bits = _NULL, 0
    elif kind is list:
        number, bits, children = _LIST, 0, value
    else:
        number, bits, children = _MAP, 0, value
    parts.append(_NODE_AND_KEY_LENGTH.pack(number, len(children), bits, len(key)) + key + _EMPTY_LENGTH)
    if number == _LIST:
        for child in children:
            _write_node(parts, b"", child)
    elif number == _MAP:
        for name, child in children.items():
            _write_node(parts, name.encode(), child)


def read(kind: Kind, message: bytes, start: int = 0) -> Any:
    """Reads a body, which ends with the message. Raises ``Malformed``. A kind of two fields gives a pair."""
    try:
        block_length, template_id, schema_id, _version = _HEADER.unpack_from(message, start)
        if schema_id != SCHEMA_ID:
            raise Malformed(f"schema {schema_id}, not {SCHEMA_ID}")
        if template_id != kind:
            raise Malformed(f"template {template_id}, not {kind:d} of {kind.name}")
        block = start + _HEADER.size
        end = block + block_length
        body: Any
        if kind is Kind.VOID:
            body = None
        elif kind is Kind.INTEGER:
            _at_least(block_length, 8)
            (body,) = _BITS.unpack_from(message, block)
        elif kind is Kind.TEXT:
            body, end = _text(message, end)
        elif kind is Kind.INTEGERS:
            body, end = _integers(message, end)
        elif kind is Kind.VALUE:
            body, end = _Nodes(message, end).read()
        else:
            _at_least(block_length, 16)
            body = struct.unpack_from("<qq", message, block)
    except (struct.error, UnicodeDecodeError) as error:
        raise Malformed(str(error)) from error
    # Slices and fields beyond the end of the message end here, too.
    if end != len(message):
        raise Malformed(f"a body of {end - start} bytes in {len(message) - start} bytes")
    return body


def _at_least(block_length: int, least: int) -> None:
    if block_length < least:
        raise Malformed(f"a block of {block_length} bytes, not {least}")


def _text(message: bytes, at: int) -> tuple[str, int]:
    (length,) = _U32.unpack_from(message, at)
    at += 4
    if length > len(message) - at:
        raise Malformed(f"{length} bytes, of which {len(message) - at}")
    return message[at : at + length].decode(), at + length


def _group(message: bytes, at: int, least: int) -> tuple[int, int, int]:
    """Reads the size of a group: length and number of entries, and where the first one begins."""
    block_length, count = _GROUP.unpack_from(message, at)
    _at_least(block_length, least)
    at += _GROUP.size
    # A count that lies allocates no memory.
    if block_length * count > len(message) - at:
        raise Malformed(f"{count} entries in {len(message) - at} bytes")
    return block_length, count, at


def _integers(message: bytes, at: int) -> tuple[list[int], int]:
    block_length, count, at = _group(message, at, 8)
    end = at + block_length * count
    if block_length == 8:
        return list(struct.unpack_from(f"<{count}q", message, at)), end
    return [_BITS.unpack_from(message, entry)[0] for entry in range(at, end, block_length)], end


class _Nodes:
    """Reads a tree of nodes."""

    def __init__(self, message: bytes, at: int) -> None:
        self._message = message
        self._block_length, self._count, self._at = _group(message, at, _NODE.size)

    def read(self) -> tuple[Any, int]:
        _, value = self._node(DEPTH_LIMIT)
        if self._count:
            raise Malformed(f"{self._count} nodes after the value")
        return value, self._at

    def _node(self, depth: int) -> tuple[str, Any]:
        """Reads a node and its children. Returns key and value."""
        if depth == 0:
            raise Malformed(f"a value deeper than {DEPTH_LIMIT}")
        if self._count == 0:
            raise Malformed("a child is missing")
        self._count -= 1
        message = self._message
        kind, children, bits = _NODE.unpack_from(message, self._at)
        at = self._at + self._block_length
        (key_length,) = _U16.unpack_from(message, at)
        at += 2
        if key_length > len(message) - at:
            raise Malformed(f"{key_length} bytes, of which {len(message) - at}")
        key = message[at : at + key_length].decode() if key_length else ""
        text, self._at = _text(message, at + key_length)
        if kind == _NULL:
            return key, None
        if kind == _BOOLEAN and bits in (0, 1):
            return key, bits == 1
        if kind == _INTEGER_NODE:
            return key, bits
        if kind == _NUMBER_NODE:
            (number,) = _NUMBER.unpack(_BITS.pack(bits))
            if not math.isfinite(number):
                raise Malformed(f"the number {number}")
            return key, number
        if kind == _TEXT_NODE:
            return key, text
        if kind == _LIST:
            return key, [self._node(depth - 1)[1] for _ in range(children)]
        if kind == _MAP:
            return key, self._map(children, depth - 1)
        raise Malformed(f"a node of kind {kind} with bits {bits}")

    def _map(self, children: int, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(children):
            key, value = self._node(depth)
            if "\0" in key:
                raise Malformed("U+0000 in a key")
            if key in values:
                raise Malformed("a key occurs twice")
            values[key] = value
        return values

"""Envelopes: the first 24 bytes of each message."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from .contract import SCHEMA_ID, SCHEMA_VERSION, Malformed

NO_CORRELATION_ID = -1
"""The correlation id of a response to a message without a readable envelope."""

_HEADER_LENGTH = 8
_BLOCK_LENGTH = 16
# Header: block length, template, schema, version. Block: correlation id, operation or status, encoding.
_LAYOUT = Struct("<4HqBB6x")


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
    encoding: int

    def write(self) -> bytes:
        """Returns the bytes before the body."""
        template, correlation_id, code, encoding = self
        return _LAYOUT.pack(_BLOCK_LENGTH, template, SCHEMA_ID, SCHEMA_VERSION, correlation_id, code, encoding)

    @staticmethod
    def read(message: bytes) -> tuple[Envelope, int]:
        """Returns the envelope of a message, and where the body begins. Raises ``Malformed``."""
        if len(message) < _LAYOUT.size:
            raise Malformed(f"a message of {len(message)} bytes")
        block_length, number, schema_id, _version, correlation_id, code, encoding = _LAYOUT.unpack_from(message)
        if schema_id != SCHEMA_ID:
            raise Malformed(f"schema {schema_id}, not {SCHEMA_ID}")
        template = _TEMPLATES.get(number)
        if template is None:
            raise Malformed(f"no message has template {number}")
        start = _HEADER_LENGTH + block_length
        if block_length < _BLOCK_LENGTH or start > len(message):
            raise Malformed(f"block length {block_length} in a message of {len(message)} bytes")
        return Envelope(template, correlation_id, code, encoding), start

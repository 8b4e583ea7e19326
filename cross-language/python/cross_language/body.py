"""Arguments and results.

The types of Python stand for the kinds: ``None``, ``int``, ``str``, ``list[int]``, the classes below, and for dynamically
typed values ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and ``dict``.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Union

from . import binary_body, json_body
from .contract import Encoding, Kind

Value = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]
"""A dynamically typed value."""


class CreateObject(NamedTuple):
    """The argument of ``CREATE``."""

    initial_value: int
    amount: int


class CallObject(NamedTuple):
    """The argument of ``CALL``."""

    object_id: int
    amount: int


class ObjectValue(NamedTuple):
    """An object after a call."""

    object_id: int
    value: int


Body = Union[Value, CreateObject, CallObject, ObjectValue]

_PAIRS: dict[Kind, Any] = {
    Kind.CREATE_OBJECT: CreateObject,
    Kind.CALL_OBJECT: CallObject,
    Kind.OBJECT_VALUE: ObjectValue,
}


def write(kind: Kind, encoding: Encoding, body: Body) -> bytes:
    """Returns the bytes of a body. Raises ``Malformed`` for more elements, or longer keys, than the encoding allows."""
    if encoding is Encoding.BINARY:
        return binary_body.write(kind, body)
    return json_body.write(kind, body)


def read(kind: Kind, encoding: Encoding, message: bytes, start: int = 0) -> Any:
    """Reads the body that is the message from ``start`` on. Raises ``Malformed`` for anything else than this body."""
    reader = binary_body.read if encoding is Encoding.BINARY else json_body.read
    body = reader(kind, message, start)
    pair = _PAIRS.get(kind)
    return body if pair is None else pair(*body)

"""Bodies in JSON."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from .contract import DEPTH_LIMIT, INTEGER_MAX, INTEGER_MIN, LIST_LIMIT, NODE_LIMIT, Kind, Malformed

_NAMES = {
    Kind.CREATE_OBJECT: ("initialValue", "amount"),
    Kind.CALL_OBJECT: ("objectId", "amount"),
    Kind.OBJECT_VALUE: ("objectId", "value"),
}

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


def write(kind: Kind, body: Any) -> bytes:
    """Returns the bytes of a body. Raises ``Malformed``."""
    names = _NAMES.get(kind)
    try:
        return _encoder.encode(body if names is None else dict(zip(names, body))).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from error


def read(kind: Kind, message: bytes, start: int) -> Any:
    """Reads a body, which ends with the message. Raises ``Malformed``. A kind of two fields gives a pair."""
    try:
        body = _decoder.decode(message[start:].decode())
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from error
    if kind is Kind.VOID:
        if body is not None:
            raise Malformed("not null")
    elif kind is Kind.INTEGER:
        _integer(body)
    elif kind is Kind.TEXT:
        _text(body)
    elif kind is Kind.INTEGERS:
        _integers(body)
    elif kind is Kind.VALUE:
        _Check().value(body, DEPTH_LIMIT)
    else:
        names = _NAMES[kind]
        if type(body) is not dict or body.keys() != set(names):
            raise Malformed(f"not an object of the integers {names}")
        body = tuple(body[name] for name in names)
        for field in body:
            _integer(field)
    return body


def _integer(value: Any) -> None:
    # Not isinstance(): a boolean is an int.
    if type(value) is not int or not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Malformed(f"no integer in 64 bits: {_shown(value)}")


def _text(value: Any) -> None:
    if type(value) is not str:
        raise Malformed(f"no text: {_shown(value)}")
    _unicode(value)


def _unicode(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Malformed(f"half of a surrogate pair: {error}") from error


def _integers(values: Any) -> None:
    if type(values) is not list:
        raise Malformed(f"no list: {_shown(values)}")
    if len(values) > LIST_LIMIT:
        raise Malformed(f"{len(values)} elements: at most {LIST_LIMIT}")
    for value in values:
        _integer(value)


def _shown(value: Any) -> str:
    """The type of a value, for an error. Its text can be long, and making it can fail for a deep value."""
    return type(value).__name__


class _Check:
    """Checks a dynamically typed value, as the decoder has built it."""

    def __init__(self) -> None:
        self._nodes = 0

    def value(self, value: Any, depth: int) -> None:
        self._nodes += 1
        if self._nodes > NODE_LIMIT or depth == 0:
            raise Malformed(f"more than {NODE_LIMIT} values, or deeper than {DEPTH_LIMIT}")
        kind = type(value)
        if kind is str:
            _unicode(value)
        elif kind is int:
            _integer(value)
        elif kind is float:
            if not math.isfinite(value):
                raise Malformed("a number that is out of range")
        elif kind is list:
            for child in value:
                self.value(child, depth - 1)
        elif kind is dict:
            for key, child in value.items():
                _unicode(key)
                self.value(child, depth - 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice")
    for key in values:
        if "\0" in key:
            raise ValueError("U+0000 in a key")
    return values


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)

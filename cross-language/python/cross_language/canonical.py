"""The canonical text of ``CONTRACT.md``, equal in all languages."""

from __future__ import annotations

import struct
from typing import Any

from .body import Body, CallObject, CreateObject, ObjectValue

_RESULT_LIMIT = 120

_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)} | {ord(char): f"\\{char}" for char in '"\\'}


def text(body: Body) -> str:
    """Returns the canonical text of a body."""
    if body is None:
        return "null"
    if isinstance(body, bool):
        return "true" if body else "false"
    if isinstance(body, int):
        return str(body)
    if isinstance(body, float):
        return "0x" + struct.pack(">d", body).hex()
    if isinstance(body, str):
        return f'"{body.translate(_ESCAPES)}"'
    if isinstance(body, CreateObject):
        return _map({"initialValue": body.initial_value, "amount": body.amount})
    if isinstance(body, CallObject):
        return _map({"objectId": body.object_id, "amount": body.amount})
    if isinstance(body, ObjectValue):
        return _map({"objectId": body.object_id, "value": body.value})
    if isinstance(body, list):
        return f"[{','.join(map(text, body))}]"
    return _map(body)


def _map(values: dict[str, Any]) -> str:
    # Texts are ordered by code points, which is the order of their UTF-8 bytes.
    return "{" + ",".join(f"{text(key)}:{text(values[key])}" for key in sorted(values)) + "}"


def shortened(result: str) -> str:
    """Returns a text, or length and hash of a long one."""
    data = result.encode()
    if len(data) <= _RESULT_LIMIT:
        return result
    # FNV-1a
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{len(data)} bytes {digest:016x}"

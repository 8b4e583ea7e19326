"""Conversions between bodies and the messages of ``service.proto``."""

from __future__ import annotations

import math
from typing import Any

import service_pb2
from cross_language.body import CallObject, CreateObject, ObjectValue, Value
from cross_language.contract import Kind, Malformed

WINDOW_OPTION = ("grpc.http2.lookahead_bytes", 1 << 20)
"""The window of HTTP/2's flow control, in bytes: equal in all languages."""

_VALUE = service_pb2.Value


def message(kind: Kind, body: Any) -> Any:
    """Returns the message of a body."""
    if kind is Kind.VOID:
        return service_pb2.Void()
    if kind is Kind.INTEGER:
        return service_pb2.Integer(value=body)
    if kind is Kind.TEXT:
        return service_pb2.Text(value=body)
    if kind is Kind.INTEGERS:
        return service_pb2.Integers(values=body)
    if kind is Kind.VALUE:
        result = _VALUE()
        _fill(result, body)
        return result
    return getattr(service_pb2, type(body).__name__)(**body._asdict())


def body(kind: Kind, message: Any) -> Any:
    """Returns the body of a message. Raises ``Malformed``."""
    if kind is Kind.VOID:
        return None
    if kind is Kind.INTEGER or kind is Kind.TEXT:
        return message.value
    if kind is Kind.INTEGERS:
        return list(message.values)
    if kind is Kind.CREATE_OBJECT:
        return CreateObject(message.initial_value, message.amount)
    if kind is Kind.CALL_OBJECT:
        return CallObject(message.object_id, message.amount)
    if kind is Kind.OBJECT_VALUE:
        return ObjectValue(message.object_id, message.value)
    return _value(message)


def _fill(message: Any, value: Value) -> None:
    kind = type(value)
    if kind is bool:
        message.kind, message.boolean = _VALUE.BOOLEAN, value
    elif kind is int:
        message.kind, message.integer = _VALUE.INTEGER, value
    elif kind is float:
        message.kind, message.number = _VALUE.NUMBER, value
    elif kind is str:
        message.kind, message.text = _VALUE.TEXT, value
    elif kind is list:
        message.kind = _VALUE.LIST
        for member in value:
            _fill(message.members.add(), member)
    elif kind is dict:
        message.kind = _VALUE.MAP
        for key, member in value.items():
            child = message.members.add()
            child.key = key
            _fill(child, member)


def _value(message: Any) -> Value:
    kind = message.kind
    if kind == _VALUE.NULL:
        return None
    if kind == _VALUE.BOOLEAN:
        return message.boolean
    if kind == _VALUE.INTEGER:
        return message.integer
    if kind == _VALUE.NUMBER:
        if not math.isfinite(message.number):
            raise Malformed(f"the number {message.number}")
        return message.number
    if kind == _VALUE.TEXT:
        return message.text
    if kind == _VALUE.LIST:
        return [_value(member) for member in message.members]
    if kind == _VALUE.MAP:
        members = {member.key: _value(member) for member in message.members}
        if len(members) < len(message.members):
            raise Malformed("two equal keys")
        return members
    raise Malformed(f"kind {kind}")

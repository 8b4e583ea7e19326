"""The service without a transport, for one session: each request gives one response."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import service_pb2 as pb
from google.protobuf.message import DecodeError

from .contract import (
    INTEGER_MAX,
    INTEGER_MIN,
    OBJECT_LIMIT,
    OPEN_CALL_LIMIT,
    SMALL_ARRAY_LIMIT,
    SQUARES_LIMIT,
)


class Failure(Exception):
    """An operation has no result."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class OpenCall:
    """A call of ``callback``."""

    last: int
    # The argument of the callback that awaits its answer.
    current: int = 0
    total: int = 0
    deadline: float = 0.0


class Service:
    """The objects and open calls of a session. Times are of ``time.monotonic()``, in seconds."""

    def __init__(self, callback_timeout: float) -> None:
        self._callback_timeout = callback_timeout
        # The value of object 1, of object 2, …
        self._objects: list[int] = []
        # By correlation id.
        self._open_calls: dict[int, OpenCall] = {}

    def receive(self, message: bytes) -> Any:
        """Decodes and executes a request."""
        try:
            request = pb.Request.FromString(message)
        except DecodeError as error:
            # No call has this correlation id.
            return failed(0, pb.MALFORMED_MESSAGE, str(error))
        return self.respond(request)

    def respond(self, request: Any) -> Any:
        """Executes a request. A failure has changed no object."""
        operation = request.WhichOneof("operation")
        try:
            if operation is None:
                raise Failure(pb.UNKNOWN_OPERATION, "a request of no known operation")
            if operation == "callback":
                return self._callback(request.correlation_id, request.callback)
            if operation.startswith("callback_"):
                return self._callback_answer(request)
            result = getattr(self, operation)(getattr(request, operation))
        except Failure as failure:
            return failed(request.correlation_id, failure.status, str(failure))
        return pb.Response(correlation_id=request.correlation_id, **{operation: result})

    def ping(self, _void: Any) -> Any:
        return pb.Void()

    def successor(self, value: int) -> int:
        return _in_range(value + 1)

    def reverse(self, text: str) -> str:
        return text[::-1]

    def running_sums(self, integers: Any) -> Any:
        if len(integers.values) > SMALL_ARRAY_LIMIT:
            raise _invalid(f"{len(integers.values)} integers: at most {SMALL_ARRAY_LIMIT}")
        return pb.Integers(values=_sums(integers.values))

    def create(self, argument: Any) -> Any:
        if len(self._objects) == OBJECT_LIMIT:
            raise Failure(pb.LIMIT_REACHED, f"{OBJECT_LIMIT} objects")
        value = _in_range(argument.initial_value + argument.amount)
        self._objects.append(value)
        return pb.ObjectValue(object_id=len(self._objects), value=value)

    def call(self, argument: Any) -> Any:
        object_id = argument.object_id
        if not 1 <= object_id <= len(self._objects):
            raise Failure(pb.UNKNOWN_OBJECT, f"no object {object_id}")
        value = _in_range(self._objects[object_id - 1] + argument.amount)
        self._objects[object_id - 1] = value
        return pb.ObjectValue(object_id=object_id, value=value)

    def transform(self, value: Any) -> Any:
        value.DiscardUnknownFields()
        _transform(value)
        return value

    def total(self, integers: Any) -> int:
        return _sums(integers.values)[-1] if integers.values else 0

    def squares(self, count: int) -> Any:
        if not 0 <= count <= SQUARES_LIMIT:
            raise _invalid(f"{count} squares: 0 to {SQUARES_LIMIT}")
        return pb.Integers(values=[number * number for number in range(count)])

    def transform_all(self, values: Any) -> Any:
        values.DiscardUnknownFields()
        _transform_all(values)
        return values

    def _callback(self, call_id: int, count: int) -> Any:
        if not 0 <= count <= SMALL_ARRAY_LIMIT:
            raise _invalid(f"{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}")
        if call_id in self._open_calls:
            raise _invalid(f"call {call_id} is open")
        if count == 0:
            return pb.Response(correlation_id=call_id, callback=0)
        if len(self._open_calls) == OPEN_CALL_LIMIT:
            raise Failure(pb.LIMIT_REACHED, f"{OPEN_CALL_LIMIT} open calls")
        return self._call_back(call_id, OpenCall(count))

    def _call_back(self, call_id: int, call: OpenCall) -> Any:
        call.current += 1
        call.deadline = time.monotonic() + self._callback_timeout
        self._open_calls[call_id] = call
        return pb.Response(correlation_id=call_id, callback_argument=call.current)

    def _callback_answer(self, request: Any) -> Any:
        call_id = request.correlation_id
        call = self._open_calls.pop(call_id, None)
        if call is None:
            raise Failure(pb.UNKNOWN_CALL, f"call {call_id} is not open")
        if request.HasField("callback_error"):
            raise Failure(pb.CALLBACK_FAILED, request.callback_error)
        call.total = _in_range(call.total + request.callback_result)
        if call.current < call.last:
            return self._call_back(call_id, call)
        return pb.Response(correlation_id=call_id, callback=call.total)

    def expire(self, now: float) -> Iterator[Any]:
        """Ends calls whose callback has not been answered in time. Yields their responses."""
        for call_id in [call_id for call_id, call in self._open_calls.items() if now > call.deadline]:
            del self._open_calls[call_id]
            text = f"no answer to a callback within {self._callback_timeout * 1000:g} ms"
            yield failed(call_id, pb.CALLBACK_FAILED, text)


def failed(correlation_id: int, status: int, text: str) -> Any:
    """Returns the response of a failure."""
    return pb.Response(correlation_id=correlation_id, failure=pb.Failure(status=status, text=text))


def _invalid(text: str) -> Failure:
    return Failure(pb.INVALID_ARGUMENT, text)


def _in_range(value: int) -> int:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise _invalid(f"{value} is out of range")
    return value


def _sums(values: Iterable[int]) -> list[int]:
    sums = list(accumulate(values))
    if sums:
        _in_range(max(sums))
        _in_range(min(sums))
    return sums


def _transform(value: Any) -> None:
    """Changes each value in a way that shows that its type was understood."""
    kind = value.WhichOneof("kind")
    if kind == "boolean":
        value.boolean = not value.boolean
    elif kind == "integer":
        value.integer = _in_range(-value.integer)
    elif kind == "number":
        value.number /= 2
    elif kind == "text":
        value.text = value.text[::-1]
    elif kind == "list":
        _transform_all(value.list)
    elif kind == "map":
        for key, member in value.map.members.items():
            if "\0" in key:
                raise _invalid("U+0000 in a key")
            _transform(member)
    elif kind is None:
        raise _invalid("a value of no known kind")


def _transform_all(values: Any) -> None:
    values.values.reverse()
    for value in values.values:
        _transform(value)

"""The operations, without messages."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from .contract import (
    INTEGER_MAX,
    INTEGER_MIN,
    OBJECT_LIMIT,
    SMALL_ARRAY_LIMIT,
    SQUARES_LIMIT,
    Failure,
    Operation,
    Status,
)


class Objects:
    """The objects of a session: values, which calls add to."""

    def __init__(self) -> None:
        # The value of object 1, of object 2, …
        self._values: list[int] = []

    def execute(self, operation: Operation, argument: Any) -> Any:
        """Executes an operation other than ``CALLBACK``, which needs the caller. A ``Failure`` has changed no object."""
        if operation is Operation.PING:
            return None
        if operation is Operation.SUCCESSOR:
            return add(argument, 1)
        if operation is Operation.REVERSE:
            return argument[::-1]
        if operation is Operation.RUNNING_SUMS:
            if len(argument) > SMALL_ARRAY_LIMIT:
                raise Failure(Status.INVALID_ARGUMENT, f"{len(argument)} integers: at most {SMALL_ARRAY_LIMIT}")
            return _sums(argument)
        if operation is Operation.CREATE:
            return self._create(argument)
        if operation is Operation.CALL:
            return self._call(argument)
        if operation is Operation.TOTAL:
            return _sums(argument)[-1] if argument else 0
        if operation is Operation.SQUARES:
            if not 0 <= argument <= SQUARES_LIMIT:
                raise Failure(Status.INVALID_ARGUMENT, f"{argument} squares: 0 to {SQUARES_LIMIT}")
            return [number * number for number in range(argument)]
        if operation is Operation.TRANSFORM_ALL and not isinstance(argument, list):
            raise Failure(Status.INVALID_ARGUMENT, "transform_all accepts a list only")
        return _transform(argument)

    def _create(self, argument: tuple[int, int]) -> tuple[int, int]:
        if len(self._values) == OBJECT_LIMIT:
            raise Failure(Status.LIMIT_REACHED, f"{OBJECT_LIMIT} objects")
        value = add(*argument)
        self._values.append(value)
        return len(self._values), value

    def _call(self, argument: tuple[int, int]) -> tuple[int, int]:
        object_id, amount = argument
        if not 1 <= object_id <= len(self._values):
            raise Failure(Status.UNKNOWN_OBJECT, f"no object {object_id}")
        value = add(self._values[object_id - 1], amount)
        self._values[object_id - 1] = value
        return object_id, value


def add(value: int, amount: int) -> int:
    """Returns a sum in 64 bits. Raises ``Failure``."""
    return _in_range(value + amount)


def _in_range(value: int) -> int:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Failure(Status.INVALID_ARGUMENT, f"{value} is out of range")
    return value


def _sums(values: list[int]) -> list[int]:
    sums = list(accumulate(values))
    if sums:
        _in_range(max(sums))
        _in_range(min(sums))
    return sums


def _transform(value: Any) -> Any:
    """Changes each value in a way that shows that its type was understood."""
    kind = type(value)
    if kind is str:
        return value[::-1]
    if kind is bool:
        return not value
    if kind is int:
        return _in_range(-value)
    if kind is float:
        return value / 2
    if kind is list:
        return [_transform(child) for child in reversed(value)]
    if kind is dict:
        return {key: _transform(child) for key, child in value.items()}
    return None

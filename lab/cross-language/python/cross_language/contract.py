"""Numbers and names of the contract."""

from __future__ import annotations

from enum import IntEnum

REQUEST_CHANNEL = "aeron:ipc?term-length=4m|mtu=8k"
REQUEST_STREAM = 3001
RESPONSE_CHANNEL = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"
RESPONSE_STREAM = 3002

SCHEMA_ID = 3001
SCHEMA_VERSION = 0

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1

SMALL_ARRAY_LIMIT = 64
"""Most elements that ``RUNNING_SUMS`` accepts, and the greatest argument of ``CALLBACK``."""
LIST_LIMIT = 65_534
"""Most elements of a list of integers."""
SQUARES_LIMIT = 20_000
"""The greatest argument of ``SQUARES``."""
OBJECT_LIMIT = 1_024
"""Most objects of a session."""
OPEN_CALL_LIMIT = 64
"""Most calls of a session that await an answer to a callback."""
DEPTH_LIMIT = 64
"""Levels of lists and maps in a value, the innermost values included."""
NODE_LIMIT = 65_534
"""Most values in a value, itself included."""


class Kind(IntEnum):
    """The kind of a body. The number is the body's template in ``schema.xml``."""

    VOID = 10
    INTEGER = 11
    TEXT = 12
    INTEGERS = 13
    CREATE_OBJECT = 14
    CALL_OBJECT = 15
    OBJECT_VALUE = 16
    VALUE = 17


class Operation(IntEnum):
    """An operation of the service."""

    PING = 1
    SUCCESSOR = 2
    REVERSE = 3
    RUNNING_SUMS = 4
    CREATE = 5
    CALL = 6
    CALLBACK = 7
    TRANSFORM = 8
    TOTAL = 9
    SQUARES = 10
    TRANSFORM_ALL = 11


class Status(IntEnum):
    """The result of a call."""

    OK = 0
    MALFORMED_MESSAGE = 1
    UNKNOWN_OPERATION = 2
    MALFORMED_BODY = 3
    INVALID_ARGUMENT = 4
    UNKNOWN_OBJECT = 5
    UNKNOWN_CALL = 6
    CALLBACK_FAILED = 7
    RESPONSE_TOO_LONG = 8
    LIMIT_REACHED = 9


# Looking up a number here is faster than calling the class, and gives None instead of an exception.
OPERATIONS: dict[int, Operation] = {operation.value: operation for operation in Operation}
STATUSES: dict[int, Status] = {status.value: status for status in Status}

KINDS = {
    Operation.PING: (Kind.VOID, Kind.VOID),
    Operation.SUCCESSOR: (Kind.INTEGER, Kind.INTEGER),
    Operation.REVERSE: (Kind.TEXT, Kind.TEXT),
    Operation.RUNNING_SUMS: (Kind.INTEGERS, Kind.INTEGERS),
    Operation.CREATE: (Kind.CREATE_OBJECT, Kind.OBJECT_VALUE),
    Operation.CALL: (Kind.CALL_OBJECT, Kind.OBJECT_VALUE),
    Operation.CALLBACK: (Kind.INTEGER, Kind.INTEGER),
    Operation.TRANSFORM: (Kind.VALUE, Kind.VALUE),
    Operation.TOTAL: (Kind.INTEGERS, Kind.INTEGER),
    Operation.SQUARES: (Kind.INTEGER, Kind.INTEGERS),
    Operation.TRANSFORM_ALL: (Kind.VALUE, Kind.VALUE),
}
"""The kinds of each operation's argument and result."""


class Malformed(Exception):
    """Bytes are not the expected message or body, or a body has no such layout."""


class Failure(Exception):
    """An operation has no result. ``status`` is never ``OK``."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status

"""A connected caller, as its server sees it."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import rusteron

from . import message as messages
from .contract import (
    KINDS,
    OPEN_CALL_LIMIT,
    OPERATIONS,
    SMALL_ARRAY_LIMIT,
    STATUSES,
    Failure,
    Kind,
    Malformed,
    Operation,
    Status,
)
from .message import NO_CORRELATION_ID, Envelope, Template
from .service import Objects, add

QUEUE_LIMIT = 16 << 20
"""Most bytes that wait for a session's caller."""


@dataclass
class OpenCall:
    """A call of ``CALLBACK``."""

    # The argument of the callback that awaits its answer.
    current: int
    last: int
    total: int
    deadline: float


class Session:
    """One caller's objects and open calls, and its response channel. Times are those of ``time.monotonic()``, in seconds."""

    def __init__(self, image: int, callback_timeout: float) -> None:
        """Makes the session of the image of a caller's requests. It has no response channel yet."""
        self._image = image
        self._callback_timeout = callback_timeout
        # None after the server has closed the session. Further requests are ignored.
        self._responses: rusteron.ExclusivePublication | None = None
        self._reset()

    def _reset(self) -> None:
        self._objects = Objects()
        self._open_calls: dict[int, OpenCall] = {}
        # Messages that could not be sent yet.
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        # Since when the first message of the queue waits.
        self._waiting_since = 0.0

    def open(self, responses: rusteron.ExclusivePublication) -> None:
        self._responses = responses

    def close(self) -> None:
        """Closes the response channel, which tells the caller that the session is over."""
        if self._responses is not None:
            self._responses.close()
            self._responses = None
        self._reset()

    def fail(self, reason: str) -> None:
        """Closes the session, and logs the reason."""
        print(f"session {self._image} closed: {reason}", file=sys.stderr, flush=True)
        self.close()

    @property
    def has_queue(self) -> bool:
        return bool(self._queue)

    def receive(self, message: bytes) -> None:
        """Handles a message of the caller."""
        if self._responses is None:
            return
        try:
            envelope, start = Envelope.read(message)
            if envelope.template is Template.REQUEST:
                self._request(envelope, message, start)
            elif envelope.template is Template.CALLBACK_RESPONSE:
                self._callback_response(envelope, message, start)
            else:
                raise Malformed(f"a caller sends no {envelope.template.name}")
        except Malformed as error:
            self._respond_failure(NO_CORRELATION_ID, Failure(Status.MALFORMED_MESSAGE, str(error)))

    def _request(self, envelope: Envelope, message: bytes, start: int) -> None:
        call_id = envelope.correlation_id
        try:
            operation = OPERATIONS.get(envelope.code)
            if operation is None:
                raise Failure(Status.UNKNOWN_OPERATION, f"no operation {envelope.code}")
            kind, result_kind = KINDS[operation]
            argument = _read(kind, message, start)
            if operation is not Operation.CALLBACK:
                result = self._objects.execute(operation, argument)
            elif self._open_call(call_id, argument):
                return
            else:
                result = 0
        except Failure as failure:
            self._respond_failure(call_id, failure)
        else:
            self._respond(call_id, Status.OK, result_kind, result)

    def _open_call(self, call_id: int, count: int) -> bool:
        """Calls the caller back for the first time. Returns ``False`` if there is nothing to call back for."""
        if not 0 <= count <= SMALL_ARRAY_LIMIT:
            raise Failure(Status.INVALID_ARGUMENT, f"{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}")
        if call_id in self._open_calls:
            raise Failure(Status.INVALID_ARGUMENT, f"call {call_id} is open")
        if count == 0:
            return False
        if len(self._open_calls) == OPEN_CALL_LIMIT:
            raise Failure(Status.LIMIT_REACHED, f"{OPEN_CALL_LIMIT} open calls")
        self._call_back(call_id, OpenCall(0, count, 0, 0.0))
        return True

    def _call_back(self, call_id: int, call: OpenCall) -> None:
        call.current += 1
        call.deadline = time.monotonic() + self._callback_timeout
        self._open_calls[call_id] = call
        self._send(Envelope(Template.CALLBACK_REQUEST, call_id, 0), Kind.INTEGER, call.current)

    def _callback_response(self, envelope: Envelope, message: bytes, start: int) -> None:
        call_id = envelope.correlation_id
        call = self._open_calls.pop(call_id, None)
        if call is None:
            self._respond_failure(call_id, Failure(Status.UNKNOWN_CALL, f"call {call_id} is not open"))
            return
        try:
            if STATUSES.get(envelope.code) is not Status.OK:
                raise Failure(Status.CALLBACK_FAILED, _read(Kind.TEXT, message, start))
            call.total = add(call.total, _read(Kind.INTEGER, message, start))
        except Failure as failure:
            self._respond_failure(call_id, failure)
            return
        if call.current < call.last:
            self._call_back(call_id, call)
        else:
            self._respond(call_id, Status.OK, Kind.INTEGER, call.total)

    def _respond_failure(self, call_id: int, failure: Failure) -> None:
        self._respond(call_id, failure.status, Kind.TEXT, str(failure))

    def _respond(self, call_id: int, status: Status, kind: Kind, result: Any) -> None:
        self._send(Envelope(Template.RESPONSE, call_id, status), kind, result)

    def _send(self, envelope: Envelope, kind: Kind, content: Any) -> None:
        responses = self._responses
        if responses is None:
            return
        try:
            message = envelope.write() + messages.write(kind, content)
            if len(message) > responses.max_message_length:
                raise Malformed(f"{len(message)} bytes: at most {responses.max_message_length}")
        except Malformed as error:
            self._respond_failure(envelope.correlation_id, Failure(Status.RESPONSE_TOO_LONG, str(error)))
            return
        if not self._queue:
            try:
                if responses.try_offer(message) is not None:
                    return
            except rusteron.Error as error:
                self.fail(str(error))
                return
            self._waiting_since = time.monotonic()
        self._queued_bytes += len(message)
        self._queue.append(message)
        if self._queued_bytes > QUEUE_LIMIT:
            self.fail(f"more than {QUEUE_LIMIT} bytes wait for its caller")

    def send_queue(self) -> None:
        """Sends messages that had to wait."""
        while self._queue and self._responses is not None:
            try:
                if self._responses.try_offer(self._queue[0]) is None:
                    return
            except rusteron.Error as error:
                self.fail(str(error))
                return
            self._queued_bytes -= len(self._queue.popleft())
            self._waiting_since = time.monotonic()

    def check_deadlines(self, now: float, client_timeout: float) -> None:
        if self._queue and now > self._waiting_since + client_timeout:
            self.fail(f"its caller has read nothing for {client_timeout * 1000:g} ms")
        late = [call_id for call_id, call in self._open_calls.items() if now > call.deadline]
        for call_id in late:
            if self._open_calls.pop(call_id, None) is not None:
                text = f"no answer to a callback within {self._callback_timeout * 1000:g} ms"
                self._respond_failure(call_id, Failure(Status.CALLBACK_FAILED, text))


def _read(kind: Kind, message: bytes, start: int) -> Any:
    try:
        return messages.read(kind, message, start)
    except Malformed as error:
        raise Failure(Status.MALFORMED_BODY, str(error)) from error

"""A session with a server, over Aeron."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable

import rusteron

from . import body
from .contract import (
    ARGUMENTS,
    ENCODINGS,
    REQUEST_CHANNEL,
    REQUEST_STREAM,
    RESPONSE_CHANNEL,
    RESPONSE_STREAM,
    RESULTS,
    STATUSES,
    Encoding,
    Kind,
    Malformed,
    Operation,
    Status,
)
from .envelope import Envelope, Template
from .registration import added

# Seconds between two looks at the connection, while a call waits.
_CHECK_INTERVAL = 0.01


class CallError(Exception):
    """A call has no result. ``name`` is the contract's, and that of the server's status if the server has answered."""

    def __init__(self, name: str, text: str, status: Status | None = None) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.status = status
        """The status in the server's answer; ``None`` if the call has no answer."""


@dataclass
class CallerOptions:
    """Settings of a caller."""

    aeron_dir: str | None = None
    request_channel: str = REQUEST_CHANNEL
    response_channel: str = RESPONSE_CHANNEL
    timeout: float = 5.0
    """Seconds that connecting, or a call with all its callbacks, may take."""
    idle: Any = "backoff"


class ServiceCaller:
    """A session, for one thread. After an error that is no answer of the server, close the caller and connect anew."""

    def __init__(self, options: CallerOptions, on_callback: Callable[[int], int]) -> None:
        """Connects. ``on_callback`` answers callbacks, and raises ``ValueError`` to fail. Raises ``CallError``."""
        self._timeout = options.timeout
        self._idle = options.idle
        self._on_callback = on_callback
        self._next_correlation_id = 1
        # True once the server has opened its response channel.
        self._is_answered = False
        self._arrived: bytes | None = None
        try:
            self._aeron = rusteron.Aeron(dir=options.aeron_dir)
        except rusteron.Error as error:
            raise CallError("AERON", str(error)) from error
        try:
            self._connect(options)
        except BaseException:
            self._aeron.close()
            raise

    def _connect(self, options: CallerOptions) -> None:
        try:
            self._responses = added(
                lambda: self._aeron.add_subscription(options.response_channel, RESPONSE_STREAM), options.timeout
            )
            channel = rusteron.ChannelUri(options.request_channel).replace(
                response_correlation_id=self._responses.registration_id
            )
            self._requests = added(
                lambda: self._aeron.add_exclusive_publication(channel, REQUEST_STREAM), options.timeout
            )
            self._requests.await_connected(options.timeout)
        except rusteron.TimedOut as error:
            raise CallError("NOT_CONNECTED", "no server is connected") from error
        except rusteron.Error as error:
            raise CallError("AERON", str(error)) from error

    def close(self) -> None:
        """Ends the session."""
        self._aeron.close()

    def __enter__(self) -> ServiceCaller:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def call(self, operation: Operation, encoding: Encoding, argument: body.Body) -> Any:
        """Calls an operation and waits for its result. Raises ``CallError``."""
        deadline = time.monotonic() + self._timeout
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        envelope = Envelope(Template.REQUEST, correlation_id, operation, encoding)
        self._send(envelope, encoding, ARGUMENTS[operation], argument, deadline)
        while True:
            message = self._receive(deadline)
            try:
                answer, start = Envelope.read(message)
                # Responses to earlier calls, which have timed out, are skipped.
                if answer.correlation_id != correlation_id:
                    continue
                if answer.template is Template.CALLBACK_REQUEST:
                    self._answer_callback(answer, message, start, deadline)
                elif answer.template is Template.RESPONSE:
                    return _result(RESULTS[operation], answer, message, start)
            except Malformed as error:
                raise CallError("MALFORMED_RESPONSE", str(error)) from error

    def call_raw(self, message: bytes) -> tuple[Envelope, bytes]:
        """Sends bytes as they are. Returns envelope and body of the next response."""
        deadline = time.monotonic() + self._timeout
        self._offer(message, deadline)
        response = self._receive(deadline)
        try:
            envelope, start = Envelope.read(response)
        except Malformed as error:
            raise CallError("MALFORMED_RESPONSE", str(error)) from error
        return envelope, response[start:]

    def _answer_callback(self, request: Envelope, message: bytes, start: int, deadline: float) -> None:
        encoding = ENCODINGS.get(request.encoding, Encoding.BINARY)
        status, kind = Status.OK, Kind.INTEGER
        content: Any
        try:
            content = self._on_callback(body.read(Kind.INTEGER, encoding, message, start))
        except (Malformed, ValueError) as error:
            status, kind, content = Status.CALLBACK_FAILED, Kind.TEXT, str(error)
        envelope = Envelope(Template.CALLBACK_RESPONSE, request.correlation_id, status, encoding)
        self._send(envelope, encoding, kind, content, deadline)

    def _send(self, envelope: Envelope, encoding: Encoding, kind: Kind, content: Any, deadline: float) -> None:
        try:
            message = envelope.write() + body.write(kind, encoding, content)
        except Malformed as error:
            raise CallError("INVALID_REQUEST", str(error)) from error
        self._offer(message, deadline)

    def _offer(self, message: bytes, deadline: float) -> None:
        while True:
            try:
                self._requests.offer(message)
                return
            except rusteron.NotConnected as error:
                raise CallError("NOT_CONNECTED", "no server is connected") from error
            except rusteron.InvalidArgument as error:
                raise CallError("INVALID_REQUEST", str(error)) from error
            except rusteron.Error as error:
                if not error.is_retryable:
                    raise CallError("CLOSED", str(error)) from error
                if time.monotonic() >= deadline:
                    text = f"request not accepted within {self._timeout:g} s"
                    raise CallError("BACK_PRESSURED", text) from error
            # Other threads run meanwhile.
            time.sleep(0)

    def _receive(self, deadline: float) -> bytes:
        """Waits for a message."""
        self._arrived = None
        while True:
            try:
                self._responses.poll(self._on_message, 1, _CHECK_INTERVAL, self._idle)
                if self._arrived is not None:
                    return self._arrived
                has_responses = self._responses.is_connected
                has_requests = self._requests.is_connected
            except rusteron.Error as error:
                raise CallError("CLOSED", str(error)) from error
            self._is_answered |= has_responses
            if not has_requests or (self._is_answered and not has_responses):
                raise CallError("NOT_CONNECTED", "no server is connected")
            if time.monotonic() >= deadline:
                raise CallError("TIMED_OUT", f"no response within {self._timeout:g} s")

    def _on_message(self, message: bytes, _header: rusteron.Header) -> None:
        self._is_answered = True
        self._arrived = message


def _result(kind: Kind, envelope: Envelope, message: bytes, start: int) -> Any:
    """Returns the result of a response, or raises its error."""
    encoding = ENCODINGS.get(envelope.encoding)
    status = STATUSES.get(envelope.code)
    if encoding is None or status is None:
        raise Malformed(f"encoding {envelope.encoding}, status {envelope.code}")
    if status is Status.OK:
        return body.read(kind, encoding, message, start)
    raise CallError(status.name, body.read(Kind.TEXT, encoding, message, start), status)

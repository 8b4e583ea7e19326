"""The caller, over Aeron and in the process of the service."""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Callable, TypeVar

import rusteron
import service_pb2 as pb
from google.protobuf.message import DecodeError

from . import modes
from .contract import REQUEST_STREAM, RESPONSE_STREAM, add_options

T = TypeVar("T")

# Seconds between two checks of the connection, while a call waits.
_CHECK_INTERVAL = 0.01


class CallError(Exception):
    """A call has no response. ``name`` is the reason, as CONTRACT.md names it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")


class AeronTransport:
    """Messages to a server and back, over Aeron."""

    def __init__(self, parsed: argparse.Namespace) -> None:
        """Connects. Raises ``CallError``."""
        self._idle = parsed.idle
        # True once the server has opened its response channel.
        self._is_answered = False
        self._arrived: bytes | None = None
        self._aeron = rusteron.Aeron(dir=parsed.aeron_dir)
        try:
            self._connect(parsed, parsed.timeout_ms / 1000)
        except BaseException:
            self._aeron.close()
            raise

    def _connect(self, parsed: argparse.Namespace, timeout: float) -> None:
        self._responses = _added(
            lambda: self._aeron.add_subscription(parsed.response_channel, RESPONSE_STREAM), timeout
        )
        channel = rusteron.ChannelUri(parsed.request_channel).replace(
            response_correlation_id=self._responses.registration_id
        )
        self._requests = _added(lambda: self._aeron.add_exclusive_publication(channel, REQUEST_STREAM), timeout)
        try:
            self._requests.await_connected(timeout)
        except rusteron.TimedOut as error:
            raise CallError("NOT_CONNECTED", "no server is connected") from error

    def close(self) -> None:
        """Ends the session."""
        self._aeron.close()

    def send(self, message: bytes, deadline: float) -> None:
        """Sends a message. Raises ``CallError``."""
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
                    raise CallError("BACK_PRESSURED", "the request was not accepted in time") from error
            # Other threads run meanwhile.
            time.sleep(0)

    def receive(self, deadline: float) -> bytes:
        """Waits for a message. Raises ``CallError``."""
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
                raise CallError("TIMED_OUT", "no response in time")

    def _on_message(self, message: bytes, _header: rusteron.Header) -> None:
        self._is_answered = True
        self._arrived = message


def _added(add: Callable[[], T], timeout: float) -> T:
    """Adds a publication or subscription.

    Tries again for so many seconds while the driver closes a socket of the address. The last caller
    over UDP may have used the same.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return add()
        except rusteron.Error as error:
            if error.kind != "ResourceTemporarilyUnavailable" or time.monotonic() >= deadline:
                raise
        time.sleep(0.001)


class InProcess:
    """Messages to the service in this process and back, over its C library. ``c/session.h`` has the functions."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._session = ctypes.c_void_p()
        library.session_connect(ctypes.byref(self._session), None)

    def close(self) -> None:
        """Ends the session."""
        self._library.session_close(self._session)

    def send(self, message: bytes, _deadline: float) -> None:
        """Executes the call of a message, up to its next callback."""
        self._library.session_send(self._session, message, ctypes.c_size_t(len(message)), ctypes.c_int64())

    def receive(self, _deadline: float) -> bytes:
        """Returns the next message."""
        message, length = ctypes.c_void_p(), ctypes.c_size_t()
        arguments = ctypes.byref(message), ctypes.byref(length), ctypes.c_int64()
        if self._library.session_receive(self._session, *arguments) != 0:
            raise CallError("TIMED_OUT", "no response")
        return ctypes.string_at(message.value or 0, length.value)


class Caller:
    """A session, for one thread. After an error, close the caller and connect anew."""

    def __init__(self, transport: Any, timeout: float, on_callback: Callable[[int], int]) -> None:
        """``on_callback`` answers callbacks, and raises ``ValueError`` to fail."""
        self._transport = transport
        self._timeout = timeout
        self._on_callback = on_callback
        self._next_correlation_id = 1

    def call(self, request: Any) -> Any:
        """Gives a request a correlation id, and waits for its result or failure.

        Raises ``CallError``.
        """
        deadline = time.monotonic() + self._timeout
        request.correlation_id = correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self._transport.send(request.SerializeToString(), deadline)
        while True:
            try:
                response = pb.Response.FromString(self._transport.receive(deadline))
            except DecodeError as error:
                raise CallError("MALFORMED_RESPONSE", str(error)) from error
            # Id 0 says that the server could not read the request. Any other id is that of an
            # earlier call, which has timed out.
            if response.correlation_id not in (correlation_id, 0):
                continue
            outcome = response.WhichOneof("outcome")
            if outcome is None:
                raise CallError("MALFORMED_RESPONSE", "no known outcome")
            if outcome != "callback_argument":
                return response
            answer = pb.Request(correlation_id=correlation_id)
            try:
                answer.callback_result = self._on_callback(response.callback_argument)
            except ValueError as error:
                answer.callback_error = str(error)
            self._transport.send(answer.SerializeToString(), deadline)


def main() -> int:
    parser = argparse.ArgumentParser(prog="caller", description="Calls the cross-language service")
    add_options(parser)
    parser.add_argument("--in-process", metavar="DIR", help="call the C library of this folder instead")
    modes.add_options(parser)
    parsed = parser.parse_args()
    library = None
    if parsed.in_process is not None:
        library = ctypes.CDLL(str(next(Path(parsed.in_process).glob("libcross_language.*"))))

    @contextmanager
    def connect() -> Iterator[modes.Call]:
        with closing(AeronTransport(parsed) if library is None else InProcess(library)) as transport:
            yield Caller(transport, parsed.timeout_ms / 1000, modes.square).call

    return modes.run(parsed, connect)


if __name__ == "__main__":
    sys.exit(main())

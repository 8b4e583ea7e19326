"""A caller's session over Aeron: its response channel, and the responses that wait for it."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

import rusteron
import service_pb2 as pb

from .contract import RESPONSE_STREAM
from .service import Service, failed

# Most bytes that wait for a session's caller, or for its channel.
_QUEUE_LIMIT = 16 << 20
# How long a new session waits while the driver closes its socket, in seconds.
_SOCKET_CLOSING = 1.0
PAUSE = 0.001
"""Seconds between two offers of a message, or two tries to open a channel."""


class Session:
    """A connected caller. Times are those of ``time.monotonic()``, in seconds."""

    def __init__(self, image: int, callback_timeout: float) -> None:
        """Makes the session of the image of a caller's requests. It has no response channel yet."""
        self._image = image
        self._service = Service(callback_timeout)
        # None before the channel is open, and after the server has closed the session.
        self._responses: rusteron.ExclusivePublication | None = None
        self._is_closed = False
        self._next_try = time.monotonic()
        # When the tries to open the channel end. None before the first one.
        self._opening_deadline: float | None = None
        # Requests before the channel is open, then responses that could not be sent yet.
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        # Since when the first response of the queue waits.
        self._waiting_since = 0.0

    def close(self) -> None:
        """Closes the response channel, which tells the caller that the session is over."""
        self._is_closed = True
        if self._responses is not None:
            self._responses.close()
            self._responses = None
        self._queue.clear()

    def _fail(self, reason: str) -> None:
        print(f"session {self._image} closed: {reason}", file=sys.stderr, flush=True)
        self.close()

    @property
    def has_queue(self) -> bool:
        return bool(self._queue)

    def receive(self, message: bytes) -> None:
        """Handles a message of the caller. A closed session ignores it."""
        if self._responses is not None:
            self._send(self._service.receive(message))
        elif not self._is_closed:
            self._enqueue(message)

    def do_work(self, aeron: rusteron.Aeron, response_channel: rusteron.ChannelUri) -> None:
        """Opens the response channel, and sends responses that had to wait."""
        if self._responses is None and not self._is_closed and time.monotonic() >= self._next_try:
            self._open(aeron, response_channel)
        while self._queue and self._responses is not None:
            try:
                if self._responses.try_offer(self._queue[0]) is None:
                    return
            except rusteron.Error as error:
                self._fail(str(error))
                return
            self._queued_bytes -= len(self._queue.popleft())
            self._waiting_since = time.monotonic()

    def _open(self, aeron: rusteron.Aeron, response_channel: rusteron.ChannelUri) -> None:
        """Opens the response channel. Tries again in a later call while the driver closes a socket.

        The last session over UDP may have used the same.
        """
        channel = response_channel.replace(response_correlation_id=self._image)
        try:
            self._responses = aeron.add_exclusive_publication(channel, RESPONSE_STREAM)
        except rusteron.Error as error:
            now = time.monotonic()
            deadline = self._opening_deadline
            if error.kind != "ResourceTemporarilyUnavailable" or (deadline is not None and now >= deadline):
                self._fail(str(error))
                return
            if deadline is None:
                print(f"session {self._image} waits: {error}", file=sys.stderr, flush=True)
                self._opening_deadline = now + _SOCKET_CLOSING
            self._next_try = now + PAUSE
            return
        requests = list(self._queue)
        self._queue.clear()
        self._queued_bytes = 0
        for message in requests:
            self.receive(message)

    def _send(self, response: Any) -> None:
        responses = self._responses
        if responses is None:
            return
        message = response.SerializeToString()
        if len(message) > responses.max_message_length:
            text = f"{len(message)} bytes: at most {responses.max_message_length}"
            self._send(failed(response.correlation_id, pb.RESPONSE_TOO_LONG, text))
            return
        if not self._queue:
            try:
                if responses.try_offer(message) is not None:
                    return
            except rusteron.Error as error:
                self._fail(str(error))
                return
            self._waiting_since = time.monotonic()
        self._enqueue(message)

    def _enqueue(self, message: bytes) -> None:
        self._queued_bytes += len(message)
        self._queue.append(message)
        if self._queued_bytes > _QUEUE_LIMIT:
            self._fail(f"more than {_QUEUE_LIMIT} bytes wait for its caller")

    def check_deadlines(self, now: float, client_timeout: float) -> None:
        if self._responses is not None and self._queue and now > self._waiting_since + client_timeout:
            self._fail(f"its caller has read nothing for {client_timeout * 1000:g} ms")
        for response in self._service.expire(now):
            self._send(response)

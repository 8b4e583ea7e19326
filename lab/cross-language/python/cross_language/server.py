"""The server: one thread, which polls requests and answers each session on its own response channel."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

import rusteron

from .contract import REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM
from .session import QUEUE_LIMIT, Session

# Seconds between two looks for callers that have gone.
_HOUSEKEEPING = 0.1
# Seconds between two offers of a message that has to wait, or two tries to open a channel. Requests end this pause.
_QUEUE_PAUSE = 0.001
_FRAGMENT_LIMIT = 10
# How long a new session waits while the driver closes its socket, in seconds.
_SOCKET_CLOSING = 1.0


class _Opening:
    """A session whose response channel is not open yet."""

    def __init__(self, image: int) -> None:
        self.image = image
        # Messages that have arrived meanwhile.
        self.messages: list[bytes] = []
        self.size = 0
        self.next_try = time.monotonic()
        # None before the first try.
        self._deadline: float | None = None

    def add(self, message: bytes) -> None:
        self.messages.append(message)
        self.size += len(message)

    def waits(self, error: rusteron.Error) -> bool:
        """Returns ``False`` if another try does not help."""
        now = time.monotonic()
        if error.kind != "ResourceTemporarilyUnavailable" or (self._deadline is not None and now >= self._deadline):
            return False
        if self._deadline is None:
            print(f"session {self.image} waits: {error}", file=sys.stderr, flush=True)
            self._deadline = now + _SOCKET_CLOSING
        self.next_try = now + _QUEUE_PAUSE
        return True


class Server:
    """A server without a thread of its own: call ``do_work`` in a loop. Timeouts are in seconds."""

    def __init__(
        self,
        aeron: rusteron.Aeron,
        request_channel: str,
        response_channel: str,
        idle_strategy: Any,
        client_timeout: float,
        callback_timeout: float,
    ) -> None:
        """Subscribes to requests."""
        self._aeron = aeron
        self._response_channel = rusteron.ChannelUri(response_channel)
        self._idle_strategy = idle_strategy
        self._client_timeout = client_timeout
        self._callback_timeout = callback_timeout
        # New sessions, by the correlation id of the image of their requests.
        self._opening: dict[int, _Opening] = {}
        # Others, by the correlation id of the image of their requests.
        self._sessions: dict[int, Session] = {}
        self._requests = aeron.add_subscription(request_channel, REQUEST_STREAM)
        self._next_housekeeping = time.monotonic()

    def do_work(self) -> None:
        """Answers requests, and sends responses that had to wait. Waits for requests, at most for a tenth of a second."""
        queues = [session for session in self._sessions.values() if session.has_queue]
        now = time.monotonic()
        pause = _QUEUE_PAUSE if queues or self._opening else max(0.0, self._next_housekeeping - now)
        self._requests.poll(self._receive, _FRAGMENT_LIMIT, pause, self._idle_strategy)
        for opening in list(self._opening.values()):
            self._open(opening)
        for session in queues:
            session.send_queue()
        now = time.monotonic()
        if now >= self._next_housekeeping:
            self._next_housekeeping = now + _HOUSEKEEPING
            self._keep_house(now)

    def _receive(self, message: bytes, header: rusteron.Header) -> None:
        image = header.image_correlation_id
        session = self._sessions.get(image)
        if session is not None:
            session.receive(message)
            return
        if image not in self._opening:
            self._opening[image] = _Opening(image)
        self._opening[image].add(message)

    def _open(self, opening: _Opening) -> None:
        """Opens the response channel of a new session. Tries again later while the driver closes a socket.

        The last session over UDP may have used the same.
        """
        session = Session(opening.image, self._callback_timeout)
        if opening.size > QUEUE_LIMIT:
            session.fail(f"more than {QUEUE_LIMIT} bytes wait for its channel")
        elif time.monotonic() < opening.next_try:
            return
        else:
            channel = self._response_channel.replace(response_correlation_id=opening.image)
            try:
                session.open(self._aeron.add_exclusive_publication(channel, RESPONSE_STREAM))
            except rusteron.Error as error:
                if opening.waits(error):
                    return
                session.fail(str(error))
        for message in opening.messages:
            session.receive(message)
        del self._opening[opening.image]
        self._sessions[opening.image] = session

    def _keep_house(self, now: float) -> None:
        images = {image.correlation_id for image in self._requests.images()}
        for image in self._opening.keys() - images:
            del self._opening[image]
        for image in self._sessions.keys() - images:
            self._sessions.pop(image).close()
        for session in self._sessions.values():
            session.check_deadlines(now, self._client_timeout)


def main() -> int:
    parser = argparse.ArgumentParser(prog="server", description="Serves the cross-language service until Ctrl-C")
    parser.add_argument("--aeron-dir", metavar="DIR", help="directory of a running media driver")
    parser.add_argument("--request-channel", metavar="URI", default=REQUEST_CHANNEL)
    parser.add_argument("--response-channel", metavar="URI", default=RESPONSE_CHANNEL)
    parser.add_argument("--idle", default="backoff", help="spin, yield or backoff")
    parser.add_argument("--client-timeout-ms", metavar="MS", type=int, default=5_000)
    parser.add_argument("--callback-timeout-ms", metavar="MS", type=int, default=5_000)
    parsed = parser.parse_args()
    is_running = True

    def stop(_number: int, _frame: Any) -> None:
        nonlocal is_running
        is_running = False

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    with rusteron.Aeron(dir=parsed.aeron_dir) as aeron:
        server = Server(
            aeron,
            parsed.request_channel,
            parsed.response_channel,
            parsed.idle,
            parsed.client_timeout_ms / 1000,
            parsed.callback_timeout_ms / 1000,
        )
        print("serving", flush=True)
        while is_running:
            server.do_work()
    return 0


if __name__ == "__main__":
    sys.exit(main())

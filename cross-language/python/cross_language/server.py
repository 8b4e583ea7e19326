"""The server: one thread, which polls requests and answers each session on its own response channel."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

import rusteron

from . import options
from .contract import REQUEST_STREAM, RESPONSE_STREAM
from .registration import added
from .session import Session

# Seconds between two looks for callers that have gone.
_HOUSEKEEPING = 0.1
# Seconds between two offers of a message that has to wait. Requests end this pause.
_QUEUE_PAUSE = 0.001
_FRAGMENT_LIMIT = 10
# How long to try while the driver closes a socket, in seconds. Other sessions wait for that.
_SOCKET_CLOSING = 1.0


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
        # By the correlation id of the image of the session's requests.
        self._sessions: dict[int, Session] = {}
        self._requests = aeron.add_subscription(request_channel, REQUEST_STREAM)
        self._next_housekeeping = time.monotonic()

    def do_work(self) -> None:
        """Answers requests, and sends responses that had to wait. Waits for requests, at most for a tenth of a second."""
        queues = [session for session in self._sessions.values() if session.has_queue]
        now = time.monotonic()
        pause = _QUEUE_PAUSE if queues else max(0.0, self._next_housekeeping - now)
        self._requests.poll(self._receive, _FRAGMENT_LIMIT, pause, self._idle_strategy)
        for session in queues:
            session.send_queue()
        now = time.monotonic()
        if now >= self._next_housekeeping:
            self._next_housekeeping = now + _HOUSEKEEPING
            self._keep_house(now)

    def _receive(self, message: bytes, header: rusteron.Header) -> None:
        image = header.image_correlation_id
        session = self._sessions.get(image)
        if session is None:
            session = self._sessions[image] = Session(image, self._callback_timeout)
            channel = self._response_channel.replace(response_correlation_id=image)
            try:
                session.open(
                    added(lambda: self._aeron.add_exclusive_publication(channel, RESPONSE_STREAM), _SOCKET_CLOSING)
                )
            except rusteron.Error as error:
                session.fail(str(error))
        session.receive(message)

    def _keep_house(self, now: float) -> None:
        images = {image.correlation_id for image in self._requests.images()}
        for image in self._sessions.keys() - images:
            self._sessions.pop(image).close()
        for session in self._sessions.values():
            session.check_deadlines(now, self._client_timeout)


def main() -> int:
    parser = argparse.ArgumentParser(prog="server", description="Serves the cross-language service until Ctrl-C")
    options.add_channels(parser)
    parser.add_argument(
        "--client-timeout-ms",
        metavar="MS",
        type=options.at_least(0),
        default=5_000,
        help="longest time that a caller may leave responses unread",
    )
    parser.add_argument(
        "--callback-timeout-ms",
        metavar="MS",
        type=options.at_least(0),
        default=5_000,
        help="longest time that a caller may take for a callback",
    )
    parsed = parser.parse_args()
    is_running = True

    def stop(_number: int, _frame: Any) -> None:
        nonlocal is_running
        is_running = False

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
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
    except rusteron.Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The server: one thread, which polls requests and answers each session on its own response channel."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

import rusteron

from .contract import REQUEST_STREAM, add_options
from .session import PAUSE, Session

# Seconds between two looks for callers that have gone.
_HOUSEKEEPING = 0.1
_FRAGMENT_LIMIT = 10


class Server:
    """A server without a thread of its own: call ``do_work`` in a loop."""

    def __init__(self, aeron: rusteron.Aeron, parsed: argparse.Namespace) -> None:
        """Subscribes to requests."""
        self._aeron = aeron
        self._response_channel = rusteron.ChannelUri(parsed.response_channel)
        self._idle_strategy = parsed.idle
        self._client_timeout = parsed.client_timeout_ms / 1000
        self._callback_timeout = parsed.callback_timeout_ms / 1000
        # By the correlation id of the image of their requests.
        self._sessions: dict[int, Session] = {}
        self._requests = aeron.add_subscription(parsed.request_channel, REQUEST_STREAM)
        self._next_housekeeping = time.monotonic()

    def do_work(self) -> None:
        """Answers requests, and sends responses that had to wait. Waits for requests, at most for a tenth of a second."""
        is_waiting = any(session.has_queue for session in self._sessions.values())
        timeout = PAUSE if is_waiting else _HOUSEKEEPING
        self._requests.poll(self._on_message, _FRAGMENT_LIMIT, timeout, self._idle_strategy)
        for session in self._sessions.values():
            session.do_work(self._aeron, self._response_channel)
        now = time.monotonic()
        if now >= self._next_housekeeping:
            self._next_housekeeping = now + _HOUSEKEEPING
            images = {image.correlation_id for image in self._requests.images()}
            for image in self._sessions.keys() - images:
                self._sessions.pop(image).close()
            for session in self._sessions.values():
                session.check_deadlines(now, self._client_timeout)

    def _on_message(self, message: bytes, header: rusteron.Header) -> None:
        image = header.image_correlation_id
        session = self._sessions.get(image)
        if session is None:
            session = self._sessions[image] = Session(image, self._callback_timeout)
        session.receive(message)


def main() -> int:
    parser = argparse.ArgumentParser(prog="server", description="Serves the cross-language service until Ctrl-C")
    add_options(parser)
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
        server = Server(aeron, parsed)
        print("serving", flush=True)
        while is_running:
            server.do_work()
    return 0


if __name__ == "__main__":
    sys.exit(main())

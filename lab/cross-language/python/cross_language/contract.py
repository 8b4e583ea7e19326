"""Numbers of the contract that are not in its schema, and options."""

from __future__ import annotations

import argparse

REQUEST_CHANNEL = "aeron:ipc?term-length=4m|mtu=8k"
REQUEST_STREAM = 3001
RESPONSE_CHANNEL = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k"
RESPONSE_STREAM = 3002

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1

SMALL_ARRAY_LIMIT = 64
"""Most elements that ``running_sums`` accepts, and the greatest argument of ``callback``."""
SQUARES_LIMIT = 20_000
"""The greatest argument of ``squares``."""
OBJECT_LIMIT = 1_024
"""Most objects of a session."""
OPEN_CALL_LIMIT = 64
"""Most calls of a session that await an answer to a callback."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of servers and callers over Aeron."""
    parser.add_argument("--aeron-dir", metavar="DIR", help="directory of a running media driver")
    parser.add_argument("--request-channel", metavar="URI", default=REQUEST_CHANNEL)
    parser.add_argument("--response-channel", metavar="URI", default=RESPONSE_CHANNEL)
    parser.add_argument("--idle", default="backoff", help="spin, yield or backoff")

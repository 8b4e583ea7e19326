"""Options that several programs have."""

from __future__ import annotations

import argparse
import os
from typing import Callable

from .contract import REQUEST_CHANNEL, RESPONSE_CHANNEL


def at_least(least: int) -> Callable[[str], int]:
    """Returns a parser of integers that are not less."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more")
        return value

    parse.__name__ = "integer"
    return parse


def add_channels(parser: argparse.ArgumentParser) -> None:
    """Adds driver, channels and idle strategy."""
    parser.add_argument(
        "--aeron-dir", metavar="DIR", default=os.environ.get("AERON_DIR"), help="directory of a running media driver"
    )
    parser.add_argument("--request-channel", metavar="URI", default=REQUEST_CHANNEL, help="channel of requests")
    parser.add_argument("--response-channel", metavar="URI", default=RESPONSE_CHANNEL, help="channel of responses")
    parser.add_argument(
        "--idle",
        choices=["spin", "yield", "sleep-ns", "backoff", "noop"],
        default="backoff",
        help="action of a loop that waits",
    )

"""Publications and subscriptions of addresses that were just closed."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

import rusteron

T = TypeVar("T")


def added(add: Callable[[], T], timeout: float) -> T:
    """Adds a publication or subscription. Tries again for so many seconds, while the driver closes a socket of the address.

    The last caller over UDP may have used the same address.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return add()
        except rusteron.Error as error:
            if error.kind != "ResourceTemporarilyUnavailable" or time.monotonic() >= deadline:
                raise
        time.sleep(0.001)

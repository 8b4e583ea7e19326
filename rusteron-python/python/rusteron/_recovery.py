"""Clients that are made again after the end of their drivers."""

import asyncio
import time

from ._errors import Error
from ._rusteron import Aeron  # type: ignore  # compiled

__all__ = ["Attempt", "Reconnect"]

# Seconds between the beginnings of two attempts.
_INTERVAL = 0.5


class Reconnect:
    """Attempts to serve with a client, each with a client of its own, until one of them succeeds.

    Takes the keyword arguments of `Aeron`. ``with attempt as aeron`` closes the client at the end of its block, and ends
    the block at an error whose ``is_transient`` is true, such as the death of the driver; the loop then goes on with a
    client that is connected again. Other exceptions leave the loop. It ends after a block without an error. Attempts
    begin at least 0.5 s apart, and wait for a driver for as long as it takes. ``async for`` does so under asyncio.

    >>> import rusteron
    >>> driver = rusteron.MediaDriver.launch_embedded()
    >>> for attempt in rusteron.Reconnect(dir=driver.aeron_dir):
    ...     with attempt as aeron:
    ...         subscription = aeron.add_subscription("aeron:ipc", 1001)
    ...         publication = aeron.add_publication("aeron:ipc", 1001)
    ...         position = publication.offer(b"hello", timeout=10)
    ...         print(next(subscription))
    b'hello'
    """

    def __init__(self, **settings):
        self._settings = settings

    def __iter__(self):
        while True:
            start = time.monotonic()
            attempt = self._connect()
            if attempt:
                yield attempt
                if not attempt._has_failed:
                    return
            time.sleep(_rest(start))

    async def __aiter__(self):
        while True:
            start = time.monotonic()
            attempt = await asyncio.to_thread(self._connect)
            if attempt:
                yield attempt
                if not attempt._has_failed:
                    return
            await asyncio.sleep(_rest(start))

    def _connect(self):
        try:
            return Attempt(Aeron(**self._settings))
        except Error as error:
            if not error.is_transient:
                raise
            return None


class Attempt:
    """A client of `Reconnect`, for one ``with`` statement."""

    def __init__(self, aeron):
        self._aeron = aeron
        self._has_failed = False

    def __enter__(self):
        return self._aeron

    def __exit__(self, kind, error, trace):
        self._aeron.close()
        self._has_failed = isinstance(error, Error) and error.is_transient
        return self._has_failed


def _rest(start):
    """Seconds until the next attempt may begin."""
    return max(0, start + _INTERVAL - time.monotonic())


for _class in [Reconnect, Attempt]:
    _class.__module__ = "rusteron"
del _class

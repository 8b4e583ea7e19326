"""Aeron for Python: publications and subscriptions over shared memory and UDP, recordings, and embedded servers.

>>> import rusteron
>>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
...     subscription = aeron.add_subscription("aeron:ipc", 1001)
...     publication = aeron.add_publication("aeron:ipc", 1001)
...     position = publication.offer(b"hello", timeout=10)
...     print(next(subscription))
b'hello'
"""

import enum as _enum

from ._errors import *
from ._message import *
from ._recovery import *
from ._rusteron import *


class Action(_enum.IntEnum):
    """How a controlled poll goes on after a message."""

    ABORT = 1
    """End the poll of this publisher; the message comes again."""
    BREAK = 2
    """End the poll of this publisher after the message."""
    COMMIT = 3
    """Tell the publisher now that the messages so far are consumed, and go on."""
    CONTINUE = 4
    """Go on. ``None`` means the same."""

"""Messages as iteration yields them."""


class Message(bytes):
    """A received message: its bytes, and ``header``, the `Header` of its last frame.

    It is pickled as plain ``bytes``.

    >>> import rusteron
    >>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
    ...     subscription = aeron.add_subscription("aeron:ipc", 1001)
    ...     publication = aeron.add_publication("aeron:ipc", 1001)
    ...     position = publication.offer(b"hello", timeout=10)
    ...     message = next(subscription)
    ...     print(message, message.header.position == position)
    b'hello' True
    """

    def __reduce__(self):
        return (bytes, (bytes(self),))


Message.__module__ = "rusteron"

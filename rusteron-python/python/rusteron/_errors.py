"""The exceptions of the package."""


class Error(Exception):
    """A failure. ``kind`` names it, ``code`` is Aeron's number (0 if there is none), ``str()`` explains it.

    The kinds are those of the Rust crates: ``"InvalidChannel"``, ``"StorageSpace"`` and so on. ``is_retryable`` tells
    the errors that pass by themselves. ``is_transient`` is also true if a new client may succeed later, such as after a
    driver's death. ``close_cause`` says why the client is closed, and is ``None`` if it is open.

    >>> import rusteron
    >>> try:
    ...     rusteron.ChannelUri.udp(term_length="100k")
    ... except rusteron.Error as error:
    ...     print(error.kind, error.is_retryable)
    InvalidChannel False
    """

    is_retryable = False
    is_transient = False
    close_cause = None

    def __init__(self, text, kind="Other", code=0):
        super().__init__(text)
        self.kind = kind
        self.code = code

    def __reduce__(self):
        return (type(self), (str(self), self.kind, self.code), self.__dict__)


class OfferError(Error):
    """A message was not accepted."""


class NotConnected(OfferError):
    """No subscriber is connected."""

    is_retryable = True


class BackPressured(OfferError):
    """The subscribers are not ready for more messages."""

    is_retryable = True


class AdminAction(OfferError):
    """The log buffer is being rotated. Try again at once."""

    is_retryable = True


class Unblocked(OfferError):
    """The media driver took a claim for abandoned; the message was not sent."""

    is_retryable = True


class MaxPositionExceeded(OfferError):
    """The stream has reached its last position. Add another publication."""


class Closed(Error):
    """The handle is closed, or its client is: by ``close()``, or by a fatal error such as a dead driver."""


class TimedOut(Error, TimeoutError):
    """The time is over. ``kind`` says what the call waited for, such as ``"BackPressured"``."""

    is_retryable = True
    is_transient = True


class DriverTimeout(Error, TimeoutError):
    """The media driver does not answer."""


class InvalidArgument(Error, ValueError):
    """An argument is invalid; the text names it with its value."""


class InUse(Error):
    """Another thread's call, the poll that this handler belongs to, a claim or a merge uses the handle."""


class MessageExpired(Error, ValueError):
    """A message view was used after its handler had returned."""


class ArchiveError(Error):
    """An archive refused a request, or the session is lost.

    ``operation`` names the request. ``relevant_id`` and ``correlation_id`` are ids of it, or ``None``.
    """

    operation = ""
    relevant_id = None
    correlation_id = None


for _class in list(globals().values()):
    if isinstance(_class, type) and issubclass(_class, Error):
        _class.__module__ = "rusteron"
del _class

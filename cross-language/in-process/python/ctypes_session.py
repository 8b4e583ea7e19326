"""Sessions over the C library, through ctypes."""

from __future__ import annotations

import ctypes
import os
from typing import Callable

_library = ctypes.CDLL(os.environ["CROSS_LANGUAGE_LIBRARY"])

_Callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))

_new = _library.cross_language_session_new
_new.argtypes = [_Callback, ctypes.c_void_p]
_new.restype = ctypes.c_void_p
_free = _library.cross_language_session_free
_free.argtypes = [ctypes.c_void_p]
_free.restype = ctypes.c_int32
_call = _library.cross_language_call
_call.argtypes = [
    ctypes.c_void_p,
    ctypes.c_uint8,
    ctypes.c_uint8,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
]
_call.restype = ctypes.c_int32


class Session:
    """The objects of one caller. ``callback(argument)`` answers callbacks, or raises an exception."""

    def __init__(self, callback: Callable[[int], int]) -> None:
        def answer(_context: int | None, argument: int, result: ctypes._Pointer[ctypes.c_int64]) -> int:
            try:
                result[0] = callback(argument)
            except Exception:
                # ctypes would print the exception, and return 0 for success.
                return 1
            return 0

        # The library calls this object as long as the session lives.
        self._callback = _Callback(answer)
        self._session: int | None = _new(self._callback, None)
        self._result = ctypes.c_void_p()
        self._length = ctypes.c_size_t()
        self._outputs = ctypes.byref(self._result), ctypes.byref(self._length)

    def call(self, operation: int, encoding: int, argument: bytes) -> tuple[int, bytes]:
        """Returns the number of the status, and the bytes of the result or of the error's text."""
        if self._session is None:
            raise ValueError("the session is closed")
        status = _call(self._session, operation, encoding, argument, len(argument), *self._outputs)
        if status < 0:
            raise RuntimeError(f"the library returned {status}")
        # A copy: the next call replaces the result.
        return status, ctypes.string_at(self._result, self._length.value)

    def close(self) -> None:
        if self._session is not None:
            _free(self._session)
            self._session = None

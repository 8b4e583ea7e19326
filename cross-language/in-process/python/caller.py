"""Calls the cross-language service in this process, through ctypes or PyO3."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cross_language import body, modes
from cross_language.contract import ARGUMENTS, RESULTS, STATUSES, Encoding, Failure, Kind, Malformed, Operation, Status


def main() -> int:
    parser = argparse.ArgumentParser(prog="caller", description="Calls the cross-language service in this process")
    parser.add_argument("binding", choices=["ctypes", "pyo3"], help="the way to the service")
    parser.add_argument(
        "--encoding", choices=["binary", "json"], default="binary", help="encoding of arguments and results"
    )
    modes.add_measuring(parser)
    modes.add_modes(parser.add_mutually_exclusive_group(required=True))
    parsed = parser.parse_args()
    encoding = Encoding[parsed.encoding.upper()]

    @contextmanager
    def connect() -> Iterator[modes.Call]:
        if parsed.binding == "ctypes":
            from ctypes_session import Session

            session = Session(modes.square)
            try:
                yield calls(session, encoding)
            finally:
                session.close()
        else:
            from cross_language_pyo3 import Session as RustSession

            yield calls(RustSession(modes.square), encoding)

    try:
        modes.run(parsed, connect)
    except (Malformed, OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def calls(session: Any, encoding: Encoding) -> modes.Call:
    """Returns the function that calls a session with bodies."""

    def call(operation: Operation, argument: Any) -> Any:
        code, result = session.call(operation, encoding, body.write(ARGUMENTS[operation], encoding, argument))
        if code == Status.OK:
            return body.read(RESULTS[operation], encoding, result)
        raise Failure(STATUSES[code], body.read(Kind.TEXT, encoding, result))

    return call


if __name__ == "__main__":
    sys.exit(main())

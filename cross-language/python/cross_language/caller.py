"""The caller."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from . import modes, options
from .contract import STATUSES, Encoding, Malformed, Operation, Status
from .service_caller import CallerOptions, CallError, ServiceCaller


def main() -> int:
    parser = argparse.ArgumentParser(prog="caller", description="Calls the cross-language service")
    options.add_channels(parser)
    parser.add_argument(
        "--encoding", choices=["binary", "json"], default="binary", help="encoding of arguments and results"
    )
    parser.add_argument(
        "--timeout-ms", metavar="MS", type=options.at_least(0), default=5_000, help="longest time of a call"
    )
    modes.add_measuring(parser)
    mode = parser.add_mutually_exclusive_group(required=True)
    modes.add_modes(mode)
    mode.add_argument(
        "--wrong-input",
        metavar="FILE",
        help="send the bytes of each line of a file, and print the status of each response",
    )
    mode.add_argument("--endless", action="store_true", help="call until a call fails, and print that failure")
    parsed = parser.parse_args()
    encoding = Encoding[parsed.encoding.upper()]
    caller_options = CallerOptions(
        parsed.aeron_dir, parsed.request_channel, parsed.response_channel, parsed.timeout_ms / 1000, parsed.idle
    )

    @contextmanager
    def connect() -> Iterator[modes.Call]:
        with ServiceCaller(caller_options, modes.square) as caller:
            yield lambda operation, argument: caller.call(operation, encoding, argument)

    try:
        if not modes.run(parsed, connect):
            with ServiceCaller(caller_options, modes.square) as caller:
                if parsed.wrong_input is not None:
                    _wrong_input(caller, parsed.wrong_input)
                else:
                    _endless(caller, encoding)
    except (CallError, Malformed, OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _wrong_input(caller: ServiceCaller, path: str) -> None:
    """Sends the message in ``LABEL HEX`` for each line."""
    with open(path, encoding="ascii") as lines:
        for line in lines:
            label, digits = line.split()
            envelope, result = caller.call_raw(bytes.fromhex(digits))
            status = STATUSES.get(envelope.code)
            if status is Status.OK:
                print(label, envelope.correlation_id, "OK", result.hex())
            else:
                name = f"status {envelope.code}" if status is None else status.name
                print(label, envelope.correlation_id, name)


def _endless(caller: ServiceCaller, encoding: Encoding) -> None:
    argument = list(range(10_000))
    is_first = True
    while True:
        caller.call(Operation.TOTAL, encoding, argument)
        if is_first:
            print("calling", flush=True)
            is_first = False


if __name__ == "__main__":
    sys.exit(main())

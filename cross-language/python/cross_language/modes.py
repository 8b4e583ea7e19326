"""The modes of a caller's program that are equal over all transports: checking, measuring, connecting."""

from __future__ import annotations

import argparse
import json
import threading
import time
from contextlib import AbstractContextManager
from typing import Any, Callable

from . import body, canonical
from .contract import ARGUMENTS, Encoding, Operation, Status
from .options import at_least

Call = Callable[[Operation, Any], Any]
"""Calls an operation with an argument. Raises an exception with a ``status``, ``None`` if the call has no answer."""

Connect = Callable[[], "AbstractContextManager[Call]"]
"""Connects. The end of the context closes the connection."""

# The greatest argument that a program's callback accepts.
_CALLBACK_LIMIT = 12


def square(argument: int) -> int:
    """Answers a callback of a caller's program."""
    if not 0 <= argument <= _CALLBACK_LIMIT:
        raise ValueError(f"{argument} is not in 0 to {_CALLBACK_LIMIT}")
    return argument * argument


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """Adds the options of measuring."""
    parser.add_argument(
        "--calls",
        metavar="N",
        type=at_least(1),
        default=10_000,
        help="calls that --measure times, in each concurrent caller",
    )
    parser.add_argument(
        "--warmup",
        metavar="N",
        type=at_least(0),
        default=10_000,
        help="calls before the timed ones, in each concurrent caller",
    )
    parser.add_argument(
        "--callers",
        metavar="K",
        type=at_least(1),
        default=1,
        help="concurrent callers of --measure, each a thread with a connection of its own",
    )
    parser.add_argument("--samples", metavar="FILE", help="file for the times in nanoseconds, one in a line")


def add_modes(group: Any) -> None:
    """Adds the options that choose a mode, to a group of exclusive options."""
    group.add_argument(
        "--check", metavar="FILE", help="call what each line of a file says, and print the results"
    )
    group.add_argument(
        "--measure",
        metavar="BYTES",
        type=at_least(0),
        help="time calls with a text of so many bytes, 0 for no argument",
    )
    group.add_argument(
        "--connect-cycles",
        metavar="N",
        type=at_least(1),
        help="connect, call ping and close so many times, and time each cycle",
    )


def run(parsed: argparse.Namespace, connect: Connect) -> bool:
    """Runs the chosen mode. Returns ``False`` if the options choose none of this module."""
    if parsed.check is not None:
        with connect() as call:
            check(parsed.check, call)
    elif parsed.measure is not None:
        measure(parsed, connect)
    elif parsed.connect_cycles is not None:
        connect_cycles(parsed, connect)
    else:
        return False
    return True


def check(cases: str, call: Call) -> None:
    """Calls ``OPERATION ARGUMENT``, the argument in JSON, for each line of a file, and prints the results."""
    with open(cases, "rb") as lines:
        for number, line in enumerate(lines, 1):
            name, argument_text = line.rstrip(b"\n").split(b" ", 1)
            operation = Operation[name.decode().upper()]
            argument = body.read(ARGUMENTS[operation], Encoding.JSON, argument_text)
            try:
                shown = canonical.shortened(canonical.text(call(operation, argument)))
            except Exception as error:
                status: Status | None = getattr(error, "status", None)
                if status is None:
                    raise
                shown = status.name
            print(number, operation.name.lower(), shown)


def measure(parsed: argparse.Namespace, connect: Connect) -> None:
    """Times calls of concurrent callers, and prints a line of JSON."""
    start = 0

    def record_start() -> None:
        nonlocal start
        start = time.perf_counter_ns()

    begin = threading.Barrier(parsed.callers, record_start)
    callers = [_TimedCaller(parsed, connect, begin) for _ in range(parsed.callers)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for caller in callers:
        if caller.error is not None:
            raise caller.error
    elapsed = max(caller.end for caller in callers) - start
    _report(parsed.samples, elapsed, [sample for caller in callers for sample in caller.times])


class _TimedCaller(threading.Thread):
    """Connects, warms up, awaits the common beginning, and times calls."""

    def __init__(self, parsed: argparse.Namespace, connect: Connect, begin: threading.Barrier) -> None:
        super().__init__(daemon=True)
        self._payload, self._warmup, self._calls = parsed.measure, parsed.warmup, parsed.calls
        self._connect = connect
        self._begin = begin
        self.times: list[int] = []
        self.end = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with self._connect() as call:
                self._time(call)
        except threading.BrokenBarrierError:
            # Another caller has failed.
            pass
        except BaseException as error:
            self.error = error
            self._begin.abort()

    def _time(self, call: Call) -> None:
        operation, argument, expected = Operation.PING, None, None
        if self._payload > 0:
            letters = "abcdefghijklmnopqrstuvwxyz"
            argument = (letters * (self._payload // len(letters) + 1))[: self._payload]
            operation, expected = Operation.REVERSE, argument[::-1]
        if call(operation, argument) != expected:
            raise RuntimeError(f"{operation.name}: wrong result")
        for _ in range(self._warmup):
            call(operation, argument)
        clock = time.perf_counter_ns
        times = [0] * self._calls
        self._begin.wait()
        for index in range(self._calls):
            start = clock()
            call(operation, argument)
            times[index] = clock() - start
        self.end = clock()
        self.times = times


def connect_cycles(parsed: argparse.Namespace, connect: Connect) -> None:
    """Connects, calls ``ping`` and closes, again and again. Prints a line of JSON. A sample is one cycle."""
    clock = time.perf_counter_ns
    times = []
    begin = clock()
    for _ in range(parsed.connect_cycles):
        start = clock()
        with connect() as call:
            call(Operation.PING, None)
        times.append(clock() - start)
    _report(parsed.samples, clock() - begin, times)


def _report(path: str | None, elapsed: int, times: list[int]) -> None:
    if path is not None:
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{sample}\n" for sample in times)
    report = {
        "elapsed_ns": elapsed,
        "calls": len(times),
        # The runtime does not tell.
        "allocations_per_call": None,
        "allocated_bytes_per_call": None,
    }
    print(json.dumps(report, separators=(",", ":")))

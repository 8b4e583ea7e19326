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

# Calls in the first block of the warm-up.
_FIRST_BLOCK = 100
# Blocks in a row that are no faster before the warm-up ends.
_STEADY_BLOCKS = 3
# Shortest warm-up.
_LEAST_WARMUP_NS = 500_000_000
# A faster block takes less than this share of an earlier block's time for a call.
_FASTER = 0.95


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
        "--warmup-ms",
        metavar="MS",
        type=at_least(0),
        default=6_000,
        help="longest time of the calls before the timed ones, which end as soon as they become no faster",
    )
    parser.add_argument(
        "--counted-ms",
        metavar="MS",
        type=at_least(0),
        default=0,
        help="time of calls after the timed ones, during which the processor's time can be read; 0 for none",
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
    # The beginning and end of the timed calls, and of those that are counted.
    marks: list[int] = []

    def mark() -> None:
        if len(marks) == 2 and parsed.counted_ms > 0:
            print("counting", flush=True)
        marks.append(time.perf_counter_ns())

    stages = threading.Barrier(parsed.callers, mark)
    callers = [_TimedCaller(parsed, connect, stages) for _ in range(parsed.callers)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for caller in callers:
        if caller.error is not None:
            raise caller.error
    report = {
        "warmup_calls": sum(caller.warmup_calls for caller in callers),
        "is_steady": all(caller.is_steady for caller in callers),
        "counted_ns": marks[3] - marks[2],
        "counted_calls": sum(caller.counted_calls for caller in callers),
        # The runtime does not tell.
        "allocations_per_call": None,
        "allocated_bytes_per_call": None,
    }
    _report(parsed.samples, marks[1] - marks[0], [sample for caller in callers for sample in caller.times], report)


class _TimedCaller(threading.Thread):
    """Connects, warms up, and after a common beginning each, times calls and counts them."""

    def __init__(self, parsed: argparse.Namespace, connect: Connect, stages: threading.Barrier) -> None:
        super().__init__(daemon=True)
        self._payload, self._calls = parsed.measure, parsed.calls
        self._warmup_ns, self._counted_ns = parsed.warmup_ms * 1_000_000, parsed.counted_ms * 1_000_000
        self._connect = connect
        self._stages = stages
        self.warmup_calls = 0
        self.is_steady = False
        self.times: list[int] = []
        self.counted_calls = 0
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
            self._stages.abort()

    def _time(self, call: Call) -> None:
        operation, argument, expected = Operation.PING, None, None
        if self._payload > 0:
            letters = "abcdefghijklmnopqrstuvwxyz"
            argument = (letters * (self._payload // len(letters) + 1))[: self._payload]
            operation, expected = Operation.REVERSE, argument[::-1]
        if call(operation, argument) != expected:
            raise RuntimeError(f"{operation.name}: wrong result")
        self._warm_up(call, operation, argument)
        clock = time.perf_counter_ns
        times = [0] * self._calls
        self._stages.wait()
        for index in range(self._calls):
            start = clock()
            call(operation, argument)
            times[index] = clock() - start
        self.times = times
        self._stages.wait()
        self._stages.wait()
        deadline = clock() + self._counted_ns
        while clock() < deadline:
            call(operation, argument)
            self.counted_calls += 1
        self._stages.wait()

    def _warm_up(self, call: Call, operation: Operation, argument: Any) -> None:
        """Calls in blocks, each twice as long as the block before, until some in a row are no faster than the fastest."""
        clock = time.perf_counter_ns
        begin = clock()
        deadline = begin + self._warmup_ns
        block, steady_blocks, fastest = _FIRST_BLOCK, 0, float("inf")
        while steady_blocks < _STEADY_BLOCKS or clock() - begin < _LEAST_WARMUP_NS:
            start = clock()
            for _ in range(block):
                if clock() >= deadline:
                    return
                call(operation, argument)
                self.warmup_calls += 1
            duration = (clock() - start) / block
            steady_blocks = 0 if duration < _FASTER * fastest else steady_blocks + 1
            fastest = min(fastest, duration)
            block *= 2
        self.is_steady = True


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
    _report(parsed.samples, clock() - begin, times, {})


def _report(path: str | None, elapsed: int, times: list[int], more: dict[str, Any]) -> None:
    if path is not None:
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{sample}\n" for sample in times)
    report = {"elapsed_ns": elapsed, "calls": len(times), **more}
    print(json.dumps(report, separators=(",", ":")))

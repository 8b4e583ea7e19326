"""The modes of a caller's program, equal over all transports: checking, measuring, connecting."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from contextlib import AbstractContextManager
from typing import Any, Callable

from . import message
from .contract import KINDS, Operation, Status

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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose a mode, and its settings."""
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", metavar="FILE", help="call what each line of a file says, and print the results")
    mode.add_argument("--measure", metavar="BYTES", type=int, help="time calls with a text, 0 for no argument")
    mode.add_argument("--connect-cycles", metavar="N", type=int, help="connect, ping and close, and time each cycle")
    parser.add_argument("--timeout-ms", metavar="MS", type=int, default=5_000, help="longest time of a call")
    parser.add_argument("--calls", metavar="N", type=int, default=10_000, help="calls that each caller times")
    parser.add_argument("--warmup-ms", metavar="MS", type=int, default=5_000, help="time of calls before these")
    parser.add_argument("--callers", metavar="K", type=int, default=1, help="concurrent callers, each a thread")
    parser.add_argument("--samples", metavar="FILE", help="file for the times in nanoseconds, one in a line")


def run(parsed: argparse.Namespace, connect: Connect) -> int:
    """Runs the chosen mode. Returns the program's status."""
    try:
        if parsed.check is not None:
            with connect() as call:
                _check(parsed.check, call)
        elif parsed.measure is not None:
            _measure(parsed, connect)
        else:
            begin = time.perf_counter_ns()
            times = [_cycle(connect) for _ in range(parsed.connect_cycles)]
            _report(parsed.samples, time.perf_counter_ns() - begin, times)
    except Exception as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _cycle(connect: Connect) -> int:
    start = time.perf_counter_ns()
    with connect() as call:
        call(Operation.PING, None)
    return time.perf_counter_ns() - start


def _check(cases: str, call: Call) -> None:
    """Calls ``OPERATION ARGUMENT`` for each line of a file, and prints the results. Bodies are hexadecimal digits."""
    with open(cases, encoding="ascii") as lines:
        for line in lines:
            name, argument = line.split()
            operation = Operation[name.upper()]
            kind, result_kind = KINDS[operation]
            try:
                result = call(operation, message.read(kind, bytes.fromhex(argument)))
                print(message.write(result_kind, result).hex())
            except Exception as error:
                status: Status | None = getattr(error, "status", None)
                if status is None:
                    raise
                print(status.name)


def _measure(parsed: argparse.Namespace, connect: Connect) -> None:
    """Times calls of concurrent callers."""
    clock = time.perf_counter_ns
    payload = parsed.measure
    operation, argument, expected = Operation.PING, None, None
    if payload > 0:
        letters = "abcdefghijklmnopqrstuvwxyz"
        argument = (letters * (payload // len(letters) + 1))[:payload]
        operation, expected = Operation.REVERSE, argument[::-1]
    begins: list[int] = []

    def begin() -> None:
        print("measuring", flush=True)
        begins.append(clock())

    barrier = threading.Barrier(parsed.callers, begin)
    samples: list[int] = []
    ends: list[int] = []

    def run_caller() -> None:
        try:
            with connect() as call:
                if call(operation, argument) != expected:
                    raise RuntimeError(f"{operation.name}: wrong result")
                warm = clock() + parsed.warmup_ms * 1_000_000
                while clock() < warm:
                    call(operation, argument)
                times = [0] * parsed.calls
                barrier.wait()
                for index in range(parsed.calls):
                    start = clock()
                    call(operation, argument)
                    times[index] = clock() - start
                ends.append(clock())
                samples.extend(times)
        except Exception as error:
            # The others wait for this caller.
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    callers = [threading.Thread(target=run_caller) for _ in range(parsed.callers)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    _report(parsed.samples, max(ends) - begins[0], samples)


def _report(path: str | None, elapsed: int, times: list[int]) -> None:
    print(json.dumps({"elapsed_ns": elapsed, "calls": len(times)}, separators=(",", ":")), flush=True)
    if path is not None:
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{sample}\n" for sample in times)

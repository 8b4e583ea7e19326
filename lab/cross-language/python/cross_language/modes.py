"""The modes of a caller's program, equal over all transports: checking, measuring, connecting."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Callable

import service_pb2 as pb

Call = Callable[[Any], Any]
"""Calls with a request, and returns its response, which may be a failure.

Over Aeron, the request gets a correlation id.
"""

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
    mode.add_argument("--check", metavar="FILE", help="call with the request of each line, and print the responses")
    mode.add_argument("--measure", metavar="BYTES", type=int, help="time calls with a text, 0 for no argument")
    mode.add_argument("--connect-cycles", metavar="N", type=int, help="connect, ping and close, and time each cycle")
    parser.add_argument("--timeout-ms", metavar="MS", type=int, default=5_000, help="longest time of a call")
    parser.add_argument("--calls", metavar="N", type=int, default=10_000, help="calls that each caller times")
    parser.add_argument("--warmup-ms", metavar="MS", type=int, default=5_000, help="time of calls before these")
    parser.add_argument("--callers", metavar="K", type=int, default=1, help="concurrent callers, each a thread")


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
            _report(time.perf_counter_ns() - begin, times)
    except Exception as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _cycle(connect: Connect) -> int:
    start = time.perf_counter_ns()
    with connect() as call:
        _checked_call(call, pb.Request(ping={}))
    return time.perf_counter_ns() - start


def _check(cases: str, call: Call) -> None:
    """Calls with the request of each line, and prints the responses, in hexadecimal digits."""
    with open(cases, encoding="ascii") as lines:
        for line in lines:
            print(call(pb.Request.FromString(bytes.fromhex(line))).SerializeToString().hex())


def _measure(parsed: argparse.Namespace, connect: Connect) -> None:
    """Times calls of concurrent callers."""
    clock = time.perf_counter_ns
    payload = parsed.measure
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = (letters * (payload // len(letters) + 1))[:payload]
    begins: list[int] = []

    def begin() -> None:
        print("measuring", flush=True)
        begins.append(clock())

    barrier = threading.Barrier(parsed.callers, begin)
    samples: list[list[int]] = []
    ends: list[int] = []

    def run_caller() -> None:
        try:
            with connect() as call:
                request = pb.Request(reverse=text) if payload > 0 else pb.Request(ping={})
                if _checked_call(call, request).reverse != text[::-1]:
                    raise RuntimeError("wrong result")
                warm = clock() + parsed.warmup_ms * 1_000_000
                while clock() < warm:
                    _checked_call(call, request)
                times = [0] * parsed.calls
                barrier.wait()
                for index in range(parsed.calls):
                    start = clock()
                    _checked_call(call, request)
                    times[index] = clock() - start
                ends.append(clock())
                samples.append(times)
        except Exception as error:
            # The others wait for this caller.
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    callers = [threading.Thread(target=run_caller) for _ in range(parsed.callers)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    _report(max(ends) - begins[0], chain.from_iterable(samples))


def _checked_call(call: Call, request: Any) -> Any:
    """Calls, and fails unless the response has the outcome of the operation."""
    response = call(request)
    outcome = response.WhichOneof("outcome")
    if outcome == "failure":
        raise RuntimeError(f"{pb.Status.Name(response.failure.status)}: {response.failure.text}")
    if outcome != request.WhichOneof("operation"):
        raise RuntimeError("the outcome of another operation")
    return response


def _report(elapsed: int, times: Iterable[int]) -> None:
    """Prints the time of all calls, and of each, in nanoseconds.

    Flushes the first line at once, because the program ``measure`` samples this process when that
    line arrives.
    """
    print(elapsed, flush=True)
    sys.stdout.writelines(f"{time}\n" for time in times)
    sys.stdout.flush()

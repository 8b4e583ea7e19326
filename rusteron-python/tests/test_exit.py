"""The end of the interpreter under daemon threads that are in the middle of a call."""

import os
import subprocess
import sys
import textwrap

import pytest

from conftest import DEADLINE

PREAMBLE = """
import asyncio, sys, threading, time, rusteron

driver = rusteron.MediaDriver.launch_embedded()
aeron = rusteron.Aeron(driver)
publication = aeron.add_publication("aeron:ipc?term-length=64k", 1001)
subscription = aeron.add_subscription("aeron:ipc?term-length=64k", 1001)
idle = aeron.add_publication("aeron:ipc?term-length=64k", 1002)
publication.await_connected(30)
subscription.await_connected(30)
entered = threading.Event()

# Collected when the interpreter finalizes. Threads that want the GIL meanwhile are ended by Python.
class Last:
    def __del__(self, sleep=time.sleep, seconds=SECONDS):
        sleep(seconds)

sys.last = Last()

def handler(message, header):
    entered.set()
    time.sleep(0)

def publish():
    while True:
        try:
            publication.offer(b"message", timeout=1)
        except rusteron.Error:
            pass

def run(function):
    def forever():
        while True:
            function()
    threading.Thread(target=forever, daemon=True).start()

def end():
    assert entered.wait(30)
    print(driver.aeron_dir, flush=True)
"""

KINDS = {
    "poll": "run(lambda: subscription.poll(handler))",
    "poll_with_timeout": "run(lambda: subscription.poll(handler, timeout=10))",
    "controlled_poll": "run(lambda: subscription.controlled_poll(handler))",
    "poll_views": "run(lambda: subscription.poll_views(handler))",
    "iteration": "run(lambda: (next(subscription), entered.set()))",
    "nested": "run(lambda: subscription.poll(lambda m, h: (entered.set(), idle.is_connected)))",
    "wait_in_handler": """
        other = aeron.add_subscription("aeron:ipc", 1003)
        run(lambda: subscription.poll(lambda m, h: (entered.set(), other.poll(handler, timeout=10))))
    """,
    "exceptions": """
        def fail():
            entered.set()
            try:
                idle.offer(b"message")
            except rusteron.Error:
                pass
        run(fail)
    """,
    "adding": "run(lambda: (aeron.add_publication('aeron:ipc?term-length=64k', 5).close(), entered.set()))",
    "asyncio": """
        async def receive():
            async for message in subscription:
                entered.set()
        run(lambda: asyncio.run(receive()))
    """,
    # Outlasts the wait at the end, and returns while the interpreter finalizes.
    "long_handler": "run(lambda: subscription.poll(lambda m, h: (entered.set(), time.sleep(2.5))))",
    "endless_handler": "run(lambda: subscription.poll(lambda m, h: (entered.set(), threading.Event().wait())))",
}


@pytest.mark.parametrize("kind", KINDS)
def test_daemon_thread_does_not_end_process(kind):
    seconds = "3" if kind == "long_handler" else "0.05"
    program = PREAMBLE.replace("SECONDS", seconds) + textwrap.dedent(KINDS[kind]) + "\nrun(publish)\nend()\n"
    runs = 2 if "handler" in kind else 8
    outcomes = []
    for _ in range(runs):
        finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=4 * DEADLINE)
        outcomes.append((finished.returncode, finished.stderr[-500:]))
        assert not os.path.exists(finished.stdout.strip())
    assert outcomes == [(0, "")] * runs

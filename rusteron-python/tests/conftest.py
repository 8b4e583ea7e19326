"""Drivers and archives of the tests. Each test has its own."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rusteron

DEADLINE = 30
"""Seconds that a condition may take, on a busy machine."""

ROOT = Path(__file__).resolve().parents[2]


def until(what, condition):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + DEADLINE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"no {what} within {DEADLINE} s"
        time.sleep(0.001)


def drain(subscription, count):
    """Polls until there are `count` messages or more, and returns them."""
    messages = []

    def poll():
        subscription.poll(lambda message, header: messages.append(message))
        return len(messages) >= count

    until(f"{count} messages", poll)
    return messages


def name_of_thread(folder):
    """Returns the name of a thread by its folder in /proc, or None if the thread has ended meanwhile."""
    try:
        return (folder / "comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None


class InterruptedChild:
    """A process that runs a program, and then a call that blocks."""

    def __init__(self, program):
        # A shell ignores the signal for what it starts in the background.
        start = "import signal, rusteron\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        end = "\nprint('ready', flush=True)\ninput()\ntry:\n    call()\nexcept KeyboardInterrupt:\n    print('interrupted')"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start + program + end], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def interrupt_its_call(self):
        """Lets the process make its call, and sends SIGINT once the call blocks."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        threads = Path(f"/proc/{self.process.pid}/task")

        def is_blocked():
            assert self.process.poll() is None, f"the call has ended: {self.process.stdout.read()}"
            return any(name_of_thread(thread) == "rusteron-call\n" for thread in threads.iterdir())

        until("call", is_blocked)
        self.process.send_signal(signal.SIGINT)
        output, _ = self.process.communicate()
        assert output == "interrupted\n"


@pytest.fixture
def driver():
    with rusteron.MediaDriver.launch_embedded(client_liveness_timeout=60, publication_unblock_timeout=70) as driver:
        yield driver


@pytest.fixture
def aeron(driver):
    with rusteron.Aeron(driver, driver_timeout=60) as aeron:
        yield aeron


@pytest.fixture
def stream(aeron):
    """A connected exclusive publication and its subscription."""
    subscription = aeron.add_subscription("aeron:ipc?term-length=64k", 1001)
    publication = aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1001)
    publication.await_connected(DEADLINE)
    subscription.await_connected(DEADLINE)
    return publication, subscription


SERVER_SETTINGS = {"control_channel_enabled": False, "threading_mode": "shared", "segment_file_length": 1 << 17}


def connect(aeron, message_timeout=DEADLINE):
    """Connects to the archive of the client's driver over IPC."""
    return rusteron.Archive.connect(
        aeron,
        control_request_channel="aeron:ipc",
        control_response_channel="aeron:ipc",
        message_timeout=message_timeout,
        message_retry_attempts=1000,
    )


class EmbeddedArchive:
    """A media driver and an archive server of this process."""

    def __init__(self, driver, archive_dir):
        self.driver = driver
        self.archive_dir = archive_dir
        self.launch()

    def launch(self):
        self.server = rusteron.ArchiveServer.launch(self.archive_dir, self.driver, **SERVER_SETTINGS)

    def aeron(self):
        return rusteron.Aeron(self.server, driver_timeout=60)

    def connect(self, aeron):
        return connect(aeron)


@pytest.fixture
def embedded_archive(driver, tmp_path):
    archive = EmbeddedArchive(driver, tmp_path / "archive")
    yield archive
    archive.server.close()


class ArchiveProcess:
    """A media driver and an archive server of another process, which can be stopped and killed."""

    PROGRAM = f"""
import sys, rusteron
driver = rusteron.MediaDriver.launch_embedded(client_liveness_timeout=60, publication_unblock_timeout=70)
server = rusteron.ArchiveServer.launch(sys.argv[1], driver, **{SERVER_SETTINGS})
print(server.aeron_dir, flush=True)
sys.stdin.read()
"""

    def __init__(self, archive_dir):
        command = [sys.executable, "-c", self.PROGRAM, str(archive_dir)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.aeron_dir = self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.aeron_dir, ignore_errors=True)


@pytest.fixture
def archive_process(tmp_path):
    process = ArchiveProcess(tmp_path / "archive")
    yield process
    process.kill()


# The tests in Rust reserve the ports from 10,000 to 19,999.
_next_port = itertools.count(os.getpid() * 4099)


def free_port():
    while True:
        port = 20_000 + next(_next_port) % 10_000
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass

import asyncio
import subprocess
import sys

import pytest

import rusteron
from conftest import DEADLINE

PROGRAM = """
import sys, rusteron
driver = rusteron.MediaDriver.launch(sys.argv[1], threading_mode="shared", shared_idle_strategy="backoff",
                                     term_buffer_sparse_file=True, client_liveness_timeout=60, publication_unblock_timeout=70)
print("ready", flush=True)
sys.stdin.read()
"""


class DriverProcess:
    """A media driver that can be killed."""

    def __init__(self, root):
        self.dir = root / "aeron"
        self.start()

    def start(self):
        command = [sys.executable, "-c", PROGRAM, str(self.dir)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def driver_process(tmp_path):
    process = DriverProcess(tmp_path)
    yield process
    process.kill()


def streams(aeron):
    subscription = aeron.add_subscription("aeron:ipc?term-length=64k", 1001)
    publication = aeron.add_publication("aeron:ipc?term-length=64k", 1001)
    publication.offer(b"message", timeout=DEADLINE)
    return subscription


def test_reconnect_goes_on_after_a_killed_driver(driver_process):
    received = []
    for attempt in rusteron.Reconnect(dir=driver_process.dir, driver_timeout=DEADLINE):
        with attempt as aeron:
            for message in streams(aeron):
                received.append(message)
                if len(received) == 2:
                    break
                driver_process.kill()
                driver_process.start()
    assert received == [b"message"] * 2 and aeron.is_closed


def test_async_reconnect_goes_on_after_a_killed_driver(driver_process):
    async def serve():
        received = []
        async for attempt in rusteron.Reconnect(dir=driver_process.dir, driver_timeout=DEADLINE):
            with attempt as aeron:
                async for message in streams(aeron):
                    received.append(message)
                    if len(received) == 2:
                        break
                    driver_process.kill()
                    driver_process.start()
        return received

    assert asyncio.run(serve()) == [b"message"] * 2


def test_reconnect_raises_what_does_not_pass(driver, tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(rusteron.Error, match="is a file"):
        list(rusteron.Reconnect(dir=file))
    for channel, error in [("nonsense", rusteron.InvalidArgument), (7, TypeError)]:
        with pytest.raises(error):
            for attempt in rusteron.Reconnect(dir=driver.aeron_dir):
                with attempt as aeron:
                    aeron.add_subscription(channel, 1001)
        assert aeron.is_closed


def test_reconnect_waits_for_a_driver(driver, tmp_path):
    reconnect = rusteron.Reconnect(dir=tmp_path / "nowhere", driver_timeout=0.01)
    assert reconnect._connect() is None
    attempts = 0
    for attempt in rusteron.Reconnect(dir=driver.aeron_dir):
        with attempt as aeron:
            attempts += 1
            if attempts < 3:
                aeron.add_publication("aeron:ipc", 1001).offer(b"nobody subscribes", timeout=0.01)
    assert attempts == 3

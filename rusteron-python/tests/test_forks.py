"""Children of `os.fork()`, which have handles of their parent and none of its threads."""

import os
import subprocess
import sys
import threading
import time

import pytest

import rusteron
from conftest import DEADLINE, connect, drain, until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def in_child(function):
    """Runs a function in a child, and waits for it to succeed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    end = time.monotonic() + DEADLINE
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0
            return
        assert time.monotonic() < end, "the child does not end"
        time.sleep(0.001)


def refused(use):
    with pytest.raises(rusteron.Closed, match=f"made by process {os.getppid()}") as raised:
        use()
    assert raised.value.kind == "ClientClosed"


def test_child_that_exits_closes_nothing():
    program = """
import os, sys, time, rusteron
driver = rusteron.MediaDriver.launch_embedded()
with rusteron.Aeron(driver) as aeron:
    subscription = aeron.add_subscription("aeron:ipc", 1001)
    publication = aeron.add_publication("aeron:ipc", 1001)
    publication.await_connected(30)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    assert (driver.aeron_dir / "cnc.dat").exists()
    publication.offer(b"message", timeout=30)
    assert next(subscription) == b"message"
    assert not aeron.is_closed and not aeron.errors()
    print(driver.aeron_dir)
"""
    # Python warns of forks in a process with threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert not os.path.exists(finished.stdout.strip())


def test_uses_in_child_raise(driver, aeron, stream):
    publication, subscription = stream
    counter = aeron.add_counter(1001, "counter")

    def uses():
        refused(lambda: publication.offer(b"message"))
        refused(lambda: publication.offer(b"message", timeout=1))
        refused(lambda: publication.try_claim(8))
        refused(lambda: subscription.poll(print))
        refused(lambda: subscription.poll(print, timeout=1))
        refused(lambda: next(subscription))
        refused(lambda: counter.increment())
        refused(lambda: aeron.add_publication("aeron:ipc", 1))
        refused(lambda: aeron.errors())
        refused(lambda: aeron.counters_reader)
        refused(lambda: driver.cnc_file())
        for handle in [publication, subscription, counter, aeron, driver]:
            assert handle.is_closed
            handle.close()

    in_child(uses)
    publication.offer(b"message", timeout=DEADLINE)
    assert drain(subscription, 1) == [b"message"]
    assert counter.value == 0


def test_claim_belongs_to_its_process(stream):
    publication, subscription = stream
    claim = publication.try_claim(6)
    claim.buffer[:] = b"parent"

    def commit():
        claim.buffer[:] = b"child!"
        refused(claim.commit)

    in_child(commit)
    assert subscription.poll(print) == 0
    claim.commit()
    assert drain(subscription, 1) == [b"parent"]


def test_handle_in_use_by_vanished_thread(stream):
    publication, subscription = stream
    is_in_handler, may_return = threading.Event(), threading.Event()

    def handler(message, header):
        is_in_handler.set()
        assert may_return.wait(DEADLINE)

    publication.offer(b"message")
    polling = threading.Thread(target=lambda: subscription.poll(handler, timeout=DEADLINE))
    polling.start()
    assert is_in_handler.wait(DEADLINE)

    def uses():
        refused(lambda: subscription.poll(print))
        subscription.close()

    in_child(uses)
    may_return.set()
    polling.join(DEADLINE)
    assert not subscription.is_closed


def test_fork_in_handler(stream):
    publication, subscription = stream
    for number in range(3):
        publication.offer(bytes([number]))
    received = []

    def handler(message, header):
        received.append(message)
        if message == b"\x00":
            in_child(lambda: None)

    until("messages", lambda: subscription.poll(handler) and len(received) == 3)
    assert received == [b"\x00", b"\x01", b"\x02"]


def test_child_has_driver_client_and_asyncio_of_its_own(driver, stream):
    import asyncio

    async def first(subscription):
        async for message in subscription:
            return message

    publication, subscription = stream
    publication.offer(b"message")
    # Starts the thread of asyncio.
    assert asyncio.run(first(subscription)) == b"message"

    def own():
        with rusteron.MediaDriver.launch_embedded() as own, rusteron.Aeron(own) as aeron:
            subscription = aeron.add_subscription("aeron:ipc", 1001)
            publication = aeron.add_publication("aeron:ipc", 1001)
            timer = threading.Timer(0.05, lambda: publication.offer(b"own", timeout=DEADLINE))
            timer.start()
            assert asyncio.run(first(subscription)) == b"own"
            timer.join()
        with rusteron.Aeron(driver=None, dir=driver.aeron_dir) as aeron:
            aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1001).offer(b"child", timeout=DEADLINE)

    in_child(own)
    assert drain(subscription, 1) == [b"child"]


def test_archive_server_is_its_process(embedded_archive):
    server = embedded_archive.server
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        publication, recording_id = archive.add_recorded_publication("aeron:ipc?term-length=64k", 1001)

        def uses():
            refused(lambda: server.has_ended)
            refused(lambda: archive.list_recordings())
            assert server.is_closed
            server.close()
            with rusteron.ArchiveServer.launch_embedded() as own, rusteron.Aeron(own) as own_aeron:
                assert connect(own_aeron).list_recordings() == []

        in_child(uses)
        position = publication.offer(b"message", timeout=DEADLINE)
        archive.await_recorded(recording_id, position, DEADLINE)
        assert drain(archive.replay(recording_id, "aeron:ipc", 2001), 1) == [b"message"]

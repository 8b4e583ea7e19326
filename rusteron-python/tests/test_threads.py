import os
import signal
import subprocess
import sys
import threading

import pytest

import rusteron
from conftest import DEADLINE, InterruptedChild, drain, until


def test_offer_waits_for_subscriber_thread(stream):
    publication, subscription = stream
    received = []

    def receive():
        for message in subscription.messages(timeout=DEADLINE):
            received.append(message)
            if message == b"end":
                return

    receiver = threading.Thread(target=receive)
    receiver.start()
    for _ in range(500):
        publication.offer(bytes(1000), timeout=DEADLINE)
    publication.offer(b"end", timeout=DEADLINE)
    receiver.join(DEADLINE)
    assert len(received) == 501


@pytest.mark.parametrize("kind", ["add_publication", "add_exclusive_publication"])
def test_threads_share_publication(aeron, kind):
    subscription = aeron.add_subscription("aeron:ipc?term-length=64k", 1001)
    publication = getattr(aeron, kind)("aeron:ipc?term-length=64k", 1001)
    publication.await_connected(DEADLINE)

    def send(number):
        for count in range(500):
            publication.offer(bytes([number]) + count.to_bytes(2, "little"), timeout=DEADLINE)

    threads = [threading.Thread(target=send, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    received = drain(subscription, 2000)
    for thread in threads:
        thread.join(DEADLINE)
    for number in range(4):
        counts = [int.from_bytes(message[1:], "little") for message in received if message[0] == number]
        assert counts == list(range(500))


def test_poll_in_its_own_handler_is_refused(stream):
    publication, subscription = stream
    publication.offer(b"hello")
    outcomes = []

    def handler(message, header):
        for use in [lambda: subscription.poll(handler), lambda: subscription.is_connected, lambda: next(subscription)]:
            with pytest.raises(rusteron.InUse):
                use()
        outcomes.append(message)

    until("message", lambda: subscription.poll(handler))
    assert outcomes == [b"hello"]


def test_poll_during_other_threads_poll_is_refused(stream):
    publication, subscription = stream
    publication.offer(b"hello")
    is_in_handler, may_return = threading.Event(), threading.Event()

    def handler(message, header):
        is_in_handler.set()
        assert may_return.wait(DEADLINE)

    polling = threading.Thread(target=lambda: subscription.poll(handler, timeout=DEADLINE))
    polling.start()
    assert is_in_handler.wait(DEADLINE)
    with pytest.raises(rusteron.InUse):
        subscription.poll(handler)
    may_return.set()
    polling.join(DEADLINE)
    assert subscription.poll(handler) == 0


def test_close_in_handler_acts_after_poll(aeron, stream):
    publication, subscription = stream
    publication.offer(b"one")
    publication.offer(b"two")
    received = []

    def handler(message, header):
        aeron.close()
        received.append(message)

    until("messages", lambda: subscription.poll(handler))
    assert received == [b"one", b"two"]
    assert subscription.is_closed and publication.is_closed and aeron.is_closed
    with pytest.raises(rusteron.Closed):
        subscription.poll(handler)


def test_close_ends_other_threads_iteration(stream):
    _, subscription = stream
    ended = []
    iterating = threading.Thread(target=lambda: ended.extend([list(subscription), True]))
    iterating.start()
    subscription.close()
    iterating.join(DEADLINE)
    assert ended == [[], True]


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_signal_handler_closes_and_raises(stream):
    _, subscription = stream

    def handler(number, frame):
        subscription.close()
        raise SystemExit(3)

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(SystemExit):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            next(subscription)
    finally:
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
def test_interrupt_ends_blocking_call(tmp_path):
    child = InterruptedChild(f"call = lambda: rusteron.CncFile({str(tmp_path)!r}, timeout={2 * DEADLINE})")
    child.interrupt_its_call()


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_interrupt_ends_wait_and_process():
    program = (
        "import signal, rusteron\n"
        # A shell ignores the signal for what it starts in the background.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "driver = rusteron.MediaDriver.launch_embedded()\n"
        "aeron = rusteron.Aeron(driver)\n"
        "subscription = aeron.add_subscription('aeron:ipc', 1001)\n"
        "print(driver.aeron_dir, flush=True)\n"
        "next(subscription)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    directory = child.stdout.readline().strip()
    assert os.path.isdir(directory)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=DEADLINE)
    assert "KeyboardInterrupt" in errors
    assert not os.path.exists(directory)

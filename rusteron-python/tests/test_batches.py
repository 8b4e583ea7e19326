import array

import pytest

import rusteron
from conftest import DEADLINE, until


def split(buffer, offsets, count):
    return [bytes(buffer[offsets[n]:offsets[n + 1]]) for n in range(count)]


def poll_all(subscription, count, typecode="i"):
    buffer, offsets = bytearray(1 << 16), array.array(typecode, [0] * (count + 1))
    messages = []

    def poll():
        messages.extend(split(buffer, offsets, subscription.poll_batch(buffer, offsets)))
        return len(messages) >= count

    until(f"{count} messages", poll)
    return messages


@pytest.mark.parametrize("typecode", "ilqILQ")
def test_batch_arrives_in_order(stream, typecode):
    publication, subscription = stream
    messages = [bytes([number]) * (number % 40) for number in range(200)]
    lengths = array.array(typecode, map(len, messages))
    assert publication.offer_batch(b"".join(messages), lengths) == 200
    assert poll_all(subscription, 200, typecode) == messages


def test_lengths_as_number_or_list(stream):
    publication, subscription = stream
    assert publication.offer_batch(b"aabbcc", 2) == 3
    assert publication.offer_batch(b"abbccc rest", [1, 2, 3]) == 3
    assert publication.offer_batch(b"", 2) == 0
    assert poll_all(subscription, 6) == [b"aa", b"bb", b"cc", b"a", b"bb", b"ccc"]


def test_wrong_lengths_refused(stream):
    publication, subscription = stream
    wrong = [0, 4, [4, 4], [-1], array.array("d", [1.0]), array.array("h", [1]), memoryview(b"\0\0\0\0")]
    for lengths in wrong:
        with pytest.raises(rusteron.InvalidArgument):
            publication.offer_batch(b"abcdef", lengths)
    with pytest.raises(BufferError):
        publication.offer_batch(b"abcdef", memoryview(array.array("i", [1, 9, 1]))[::2])
    assert subscription.poll(lambda *_: pytest.fail("nothing was sent")) == 0


def test_batch_goes_on_under_back_pressure(stream):
    publication, subscription = stream
    count = 5000
    batch = b"".join(number.to_bytes(4, "little") * 8 for number in range(count))
    accepted = publication.offer_batch(batch, 32)
    assert 0 < accepted < count
    assert publication.offer_batch(batch, 32, start=accepted) == 0
    assert publication.offer_batch(batch, 32, start=accepted, timeout=0.02) == 0
    buffer, offsets = bytearray(1 << 16), array.array("i", [0] * 1001)
    received = bytearray()

    def exchange():
        nonlocal accepted, received
        polled = subscription.poll_batch(buffer, offsets)
        received += buffer[:offsets[polled]]
        # The driver moves the limit a moment later.
        accepted += publication.offer_batch(batch, 32, start=accepted, timeout=0.01)
        return len(received) == len(batch)

    until("all messages", exchange)
    assert accepted == count
    assert received == batch


def test_messages_that_do_not_fit_come_next(stream):
    publication, subscription = stream
    for message in [b"aaaa", b"bbbb", b"cccc"]:
        publication.offer(message)
    buffer, offsets = bytearray(10), array.array("q", [0] * 10)
    assert until("messages", lambda: subscription.poll_batch(buffer, offsets)) == 2
    assert split(buffer, offsets, 2) == [b"aaaa", b"bbbb"]
    small = bytearray(3)
    with pytest.raises(rusteron.InvalidArgument, match="4 bytes"):
        subscription.poll_batch(small, offsets)
    assert until("message", lambda: subscription.poll_batch(buffer, offsets)) == 1
    assert split(buffer, offsets, 1) == [b"cccc"]


def test_wrong_batch_buffers_refused(stream):
    _, subscription = stream
    offsets = array.array("i", [0, 0])
    with pytest.raises((BufferError, TypeError)):
        subscription.poll_batch(b"read only", offsets)
    with pytest.raises(rusteron.InvalidArgument):
        subscription.poll_batch(bytearray(8), array.array("i", [0]))
    with pytest.raises(rusteron.InvalidArgument):
        subscription.poll_batch(bytearray(8), bytearray(8))
    assert subscription.poll_batch(bytearray(8), offsets, timeout=0.01) == 0


def test_numpy_arrays_without_copies(stream):
    numpy = pytest.importorskip("numpy")
    publication, subscription = stream
    records = numpy.zeros(100, dtype=[("id", "<i8"), ("price", "<f8")])
    records["id"] = numpy.arange(100)
    records["price"] = numpy.arange(100) / 4
    # A structured array exports a format of its own; its bytes are one view away.
    assert publication.offer_batch(records.view(numpy.uint8), 16) == 100
    assert publication.offer_batch(records.view(numpy.uint8), numpy.full(100, 16, dtype=numpy.int64)) == 100
    received = numpy.zeros(200, dtype=records.dtype)
    offsets = numpy.zeros(201, dtype=numpy.int32)
    count = until("messages", lambda: subscription.poll_batch(received.view(numpy.uint8), offsets))
    while count < 200:
        more = subscription.poll_batch(received[count:].view(numpy.uint8), offsets, timeout=DEADLINE)
        assert more > 0
        count += more
    assert (received[:100] == records).all() and (received[100:] == records).all()
    claim = publication.try_claim(16)
    claimed = numpy.frombuffer(claim, dtype=records.dtype)
    claimed["id"] = 7
    with pytest.raises(BufferError):
        claim.commit()
    del claimed
    claim.commit()
    assert numpy.frombuffer(next(subscription), dtype=records.dtype)["id"] == 7

import array
import copy
import pickle
import struct

import pytest

import rusteron
from conftest import DEADLINE, drain, until


@pytest.mark.parametrize("message", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), array.array("i", [1, 2, 3])])
def test_bytes_like_messages_arrive(stream, message):
    publication, subscription = stream
    publication.offer(message)
    assert drain(subscription, 1) == [bytes(message)]


def test_scattered_or_foreign_messages_refused(stream):
    publication, _ = stream
    with pytest.raises(BufferError):
        publication.offer(memoryview(b"abcdef")[::2])
    for message in ["text", 7, None]:
        with pytest.raises(TypeError):
            publication.offer(message)


def test_long_message_arrives_whole(stream):
    publication, subscription = stream
    message = bytes(range(256)) * 20
    assert len(message) > publication.max_payload_length
    publication.offer(message, timeout=DEADLINE)
    publication.offer(message, timeout=DEADLINE)
    assert drain(subscription, 2) == [message, message]
    publication.offer(message, timeout=DEADLINE)
    assert next(subscription) == message


def test_headers_can_be_kept(stream):
    publication, subscription = stream
    position = publication.offer(b"hello")
    headers = []
    until("message", lambda: subscription.poll(lambda _, header: headers.append(header)))
    (header,) = headers
    assert (header.session_id, header.stream_id) == (publication.session_id, 1001)
    assert (header.position, header.frame_length, header.term_offset) == (position, 37, 0)
    (image,) = subscription.images()
    assert header.image_correlation_id == image.correlation_id


def test_response_reaches_the_requester(aeron):
    requests = aeron.add_subscription("aeron:ipc", 1001)
    callers = []
    for number in range(2):
        responses = aeron.add_subscription("aeron:ipc?control-mode=response", 1002)
        channel = rusteron.ChannelUri.ipc(response_correlation_id=responses.registration_id)
        request = aeron.add_exclusive_publication(channel, 1001)
        request.offer(bytes([number]), timeout=DEADLINE)
        callers.append((request, responses))
    received = []
    while len(received) < 2:
        assert requests.poll(lambda *arrived: received.append(arrived), timeout=DEADLINE)
    channel = rusteron.ChannelUri("aeron:ipc?control-mode=response")
    answers = [
        aeron.add_exclusive_publication(
            channel.replace(response_correlation_id=header.image_correlation_id), 1002
        )
        for _, header in received
    ]
    for answer, (message, _) in zip(answers, received):
        answer.offer(message * 2, timeout=DEADLINE)
    for number, (_, responses) in enumerate(callers):
        assert next(responses) == bytes([number]) * 2
        assert responses.image_count == 1


@pytest.mark.parametrize("idle_strategy", ["spin", "yield", "sleep-ns", "backoff", "noop"])
def test_poll_waits_with_each_idle_strategy(stream, idle_strategy):
    publication, subscription = stream
    # Nothing has been sent: the poll idles until its timeout.
    assert subscription.poll(print, timeout=0.001, idle_strategy=idle_strategy) == 0
    publication.offer(b"message")
    received = []
    while not received:
        assert subscription.poll(
            lambda message, _: received.append(message), timeout=DEADLINE, idle_strategy=idle_strategy
        )
    assert received == [b"message"]
    with pytest.raises(rusteron.InvalidArgument, match="doze"):
        subscription.poll(print, timeout=0, idle_strategy="doze")


def test_handler_exception_loses_no_message(stream):
    publication, subscription = stream
    sent = [bytes([number]) for number in range(10)]
    for message in sent:
        publication.offer(message)
    received = []

    def handler(message, header):
        if message == b"\x04" and attempts < 3:
            raise KeyError("four")
        received.append(message)

    for attempts in range(3):
        with pytest.raises(KeyError, match="four"):
            until("exception", lambda: subscription.poll(handler, 100))
        assert received == sent[:4]
    attempts = 3
    until("the rest", lambda: subscription.poll(handler, 100))
    assert received == sent


def test_exception_of_a_long_message_repeats_it(stream):
    publication, subscription = stream
    message = b"x" * 5000
    publication.offer(message, timeout=DEADLINE)
    raised = 0

    def handler(_message, _header):
        raise ArithmeticError

    def poll():
        nonlocal raised
        try:
            subscription.poll(handler)
        except ArithmeticError:
            raised += 1
        return raised == 2

    until("exceptions", poll)
    assert drain(subscription, 1) == [message]


def test_controlled_poll_acts_as_told(stream):
    publication, subscription = stream
    for number in range(4):
        publication.offer(bytes([number]))
    seen = []

    def handler(message, header):
        seen.append(message[0])
        return actions.pop(0)

    actions = [None, rusteron.Action.ABORT]
    assert until("two", lambda: subscription.controlled_poll(handler)) == 1
    actions = [rusteron.Action.COMMIT, rusteron.Action.BREAK]
    assert until("two", lambda: subscription.controlled_poll(handler)) == 2
    actions = ["nonsense"]
    with pytest.raises(rusteron.InvalidArgument):
        until("one", lambda: subscription.controlled_poll(handler))
    actions = [rusteron.Action.CONTINUE]
    assert until("one", lambda: subscription.controlled_poll(handler)) == 1
    assert seen == [0, 1, 1, 2, 3, 3]


def test_kept_view_raises(stream):
    publication, subscription = stream
    publication.offer(b"\x01\x02\x03\x04")
    kept = []
    copied = bytearray(6)

    def handler(view, header):
        kept.append(view)
        assert not view.is_expired
        assert (len(view), view[0], view[-1], view[1:3], view[::-2]) == (4, 1, 4, b"\x02\x03", b"\x04\x02")
        assert view.bytes() == bytes(view) == b"\x01\x02\x03\x04"
        assert view.copy_into(copied, 2) == 4
        with pytest.raises(rusteron.InvalidArgument):
            view.copy_into(copied, 3)
        with pytest.raises(IndexError):
            view[4]
        with memoryview(view) as lent:
            assert lent.readonly and lent == b"\x01\x02\x03\x04"

    until("message", lambda: subscription.poll_views(handler))
    assert copied == b"\0\0\x01\x02\x03\x04"
    (view,) = kept
    assert view.is_expired and "expired" in repr(view)
    uses = [view.bytes, lambda: bytes(view), lambda: len(view), lambda: view[0], lambda: view[:], lambda: view.copy_into(copied), lambda: memoryview(view)]
    for use in uses:
        with pytest.raises(rusteron.MessageExpired):
            use()


def test_view_of_failed_handler_raises(stream):
    publication, subscription = stream
    publication.offer(b"hello")
    kept = []

    def handler(view, header):
        kept.append(view)
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        until("message", lambda: subscription.poll_views(handler))
    with pytest.raises(rusteron.MessageExpired):
        kept[0].bytes()


@pytest.mark.parametrize("length", [8, 4096])
def test_view_kept_beyond_its_handler_holds_the_message(stream, length):
    numpy = pytest.importorskip("numpy")
    publication, subscription = stream
    first, second = bytes([1]) * length, bytes([2]) * length
    for message in [first, second]:
        publication.offer(message, timeout=DEADLINE)
    kept = []

    def keep(view, header):
        kept.append(numpy.frombuffer(view, dtype="<i8"))

    with pytest.raises(BufferError, match="1 array"):
        until("messages", lambda: subscription.poll_views(keep))
    position = publication.position
    while publication.try_offer(second) is not None:
        position = publication.position
    for use in [lambda: next(subscription), lambda: subscription.images(), lambda: subscription.poll_views(keep)]:
        with pytest.raises(rusteron.InUse):
            use()
    assert not kept[0].flags.writeable and kept[0].tobytes() == first
    kept.clear()
    received = []
    until("messages", lambda: subscription.poll(lambda *arrived: received.append(arrived)) == 0 and received)
    assert received[0][0] == first and {message for message, _ in received[1:]} == {second}
    assert received[-1][1].position == position


def test_closed_subscription_of_kept_view_keeps_memory(stream, aeron, driver):
    numpy = pytest.importorskip("numpy")
    publication, subscription = stream
    publication.offer(b"12345678")
    kept = []
    with pytest.raises(BufferError):
        until("message", lambda: subscription.poll_views(lambda view, _: kept.append(memoryview(view)[2:])))
    for handle in [publication, subscription, aeron, driver]:
        handle.close()
    assert numpy.frombuffer(kept[0], dtype="S3")[0] == b"345"


def test_iterated_message_has_its_header(stream):
    publication, subscription = stream
    for message in [b"hello", bytes(4096)]:
        position = publication.offer(message, timeout=DEADLINE)
        received = next(subscription)
        assert isinstance(received, rusteron.Message) and received == message
        header = received.header
        assert (header.session_id, header.stream_id) == (publication.session_id, 1001)
        assert (header.position, header.reserved_value) == (position, 0)
    assert type(pickle.loads(pickle.dumps(received))) is bytes and copy.copy(received) == message


def test_iteration_waits_and_ends(stream):
    publication, subscription = stream
    for number in range(3):
        publication.offer(bytes([number]))
    received = []
    for message in subscription:
        received.append(message)
        if len(received) == 3:
            break
    assert received == [b"\0", b"\x01", b"\x02"]
    publication.offer(b"last")
    assert list(subscription.messages(timeout=0.05)) == [b"last"]
    subscription.close()
    assert list(subscription) == []


def test_offer_errors_are_exceptions(aeron):
    publication = aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1001)
    with pytest.raises(rusteron.NotConnected) as raised:
        publication.offer(b"hello")
    assert (raised.value.kind, raised.value.code, raised.value.is_retryable) == ("NotConnected", 0, True)
    assert publication.try_offer(b"hello") is None
    with pytest.raises(rusteron.NotConnected):
        publication.try_claim(8)
    with pytest.raises(TimeoutError) as raised:
        publication.offer(b"hello", timeout=0.02)
    assert isinstance(raised.value, rusteron.TimedOut) and raised.value.kind == "NotConnected"
    with pytest.raises(rusteron.TimedOut):
        publication.await_connected(0.02)
    subscription = aeron.add_subscription("aeron:ipc?term-length=64k", 1001)
    publication.await_connected(DEADLINE)
    with pytest.raises(rusteron.BackPressured):
        while True:
            publication.offer(bytes(1000))
    with pytest.raises(rusteron.TimedOut) as raised:
        publication.offer(bytes(1000), timeout=0.02)
    assert raised.value.kind == "BackPressured"
    with pytest.raises(rusteron.InvalidArgument):
        publication.offer(bytes(publication.max_message_length + 1))
    for timeout in [-1.0, float("nan")]:
        with pytest.raises(ValueError):
            publication.offer(b"", timeout=timeout)
    subscription.close()
    publication.close()
    with pytest.raises(rusteron.Closed):
        publication.offer(b"hello")
    assert publication.is_closed


def test_claim_is_committed_or_aborted(stream):
    publication, subscription = stream
    with publication.try_claim(8) as view:
        struct.pack_into("<q", view, 0, 77)
    with pytest.raises(ValueError):
        view[0] = 1
    with pytest.raises(ArithmeticError):
        with publication.try_claim(8):
            raise ArithmeticError
    claim = publication.try_claim(3)
    claim.reserved_value = 5
    claim.buffer[:] = b"abc"
    position = claim.position
    assert claim.commit() == position == publication.position
    assert claim.is_ended
    for use in [claim.commit, claim.abort, lambda: claim.buffer, lambda: len(claim), lambda: claim.position]:
        with pytest.raises(ValueError):
            use()
    with pytest.raises(BufferError):
        memoryview(claim)
    publication.try_claim(3).abort()
    del claim
    publication.try_claim(3)
    received = []
    publication.offer(b"after")
    until("messages", lambda: subscription.poll(lambda m, h: received.append((m, h.reserved_value))) and len(received) == 3)
    assert received == [(struct.pack("<q", 77), 0), (b"abc", 5), (b"after", 0)]
    with pytest.raises(ValueError):
        rusteron.Claim().commit()


def test_kept_claim_view_blocks_commit(stream):
    publication, subscription = stream
    claim = publication.try_claim(4)
    part = claim.buffer[1:3]
    with pytest.raises(BufferError):
        claim.commit()
    part[:] = b"xy"
    part.release()
    claim.commit()
    assert drain(subscription, 1)[0][1:3] == b"xy"

    # So does an abort, but it ends the claim for all that.
    claim = publication.try_claim(4)
    part = claim.buffer[1:3]
    claim.abort()
    assert claim.is_ended
    with pytest.raises(rusteron.InUse):
        publication.offer(b"blocked")
    del part

    # A block that ends with a view aborts, when the view ends.
    with pytest.raises(BufferError):
        with publication.try_claim(4) as view:
            part = view[1:3]
    with pytest.raises(rusteron.InUse):
        publication.offer(b"blocked")
    part[:] = b"xy"
    del part
    publication.offer(b"after")
    assert drain(subscription, 1) == [b"after"]


def test_view_of_collected_claim_is_safe(stream):
    publication, subscription = stream
    view = memoryview(publication.try_claim(4))
    publication.close()
    view[:] = b"abcd"
    view.release()
    refuse = lambda *_: pytest.fail("the claim is aborted")
    until("end", lambda: subscription.poll(refuse) == 0 and not subscription.is_connected)


def test_shared_publication_has_several_claims(aeron):
    subscription = aeron.add_subscription("aeron:ipc", 1001)
    publication = aeron.add_publication("aeron:ipc", 1001)
    publication.await_connected(DEADLINE)
    first, second = publication.try_claim(1), publication.try_claim(1)
    second.buffer[0] = 2
    second.commit()
    publication.close()
    first.buffer[0] = 1
    first.commit()
    assert drain(subscription, 2) == [b"\x01", b"\x02"]


def test_forgotten_claim_is_aborted(stream):
    publication, subscription = stream
    claim = publication.try_claim(4)
    view = claim.buffer
    view[0] = 1
    assert claim.buffer is view
    # No cycle keeps them: the collector is not needed.
    del claim, view
    publication.offer(b"after")
    assert drain(subscription, 1) == [b"after"]


def test_poll_for_no_fragments_is_refused(stream):
    publication, subscription = stream
    publication.offer(b"message", timeout=DEADLINE)
    with pytest.raises(rusteron.InvalidArgument, match="fragment_limit: 0"):
        subscription.poll(print, 0, timeout=DEADLINE)
    assert next(subscription) == b"message"


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
    for lengths in [0, 4, [4, 4], [-1]]:
        with pytest.raises(rusteron.InvalidArgument):
            publication.offer_batch(b"abcdef", lengths)
    for lengths in [array.array("d", [1.0]), array.array("h", [1]), memoryview(b"\0\0\0\0")]:
        with pytest.raises(rusteron.InvalidArgument, match="array of one dimension"):
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

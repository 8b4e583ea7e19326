import os
import signal

import pytest

import rusteron
from conftest import DEADLINE, InterruptedChild, drain, free_port, until

CHANNEL = "aeron:ipc?term-length=64k"


def test_record_list_and_replay(embedded_archive):
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        subscription_id = archive.start_recording(CHANNEL, 1001)
        publication = aeron.add_publication(CHANNEL, 1001)
        sent = [f"message {number}".encode() for number in range(20)]
        for message in sent:
            position = publication.offer(message, timeout=DEADLINE)
        recording_id = archive.await_recording(publication.session_id, DEADLINE)
        assert archive.find_last_matching_recording(0, "aeron:ipc", 1001, publication.session_id) == recording_id
        assert archive.await_recorded(recording_id, position, DEADLINE) >= position

        (recording,) = archive.list_recordings()
        assert recording.recording_id == recording_id
        assert (recording.stream_id, recording.session_id) == (1001, publication.session_id)
        assert recording.stop_position is None
        assert [it.recording_id for it in archive.list_recordings_for_uri("aeron:ipc", 1001)] == [recording_id]
        assert archive.list_recording(recording_id + 1) is None

        archive.stop_recording_subscription(subscription_id)
        assert until("end", lambda: archive.stop_position(recording_id)) == position
        for length in [None, "recorded", position]:
            with archive.replay(recording_id, "aeron:ipc", 2001, length=length) as replay:
                assert drain(replay, len(sent)) == sent
        with archive.replay(recording_id, "aeron:ipc", 2001, position=64) as replay:
            assert drain(replay, len(sent) - 1) == sent[1:]
        publication.close()
        archive.purge_recording(recording_id)
        assert archive.list_recordings() == []


def test_refusals_are_archive_errors(embedded_archive):
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        with pytest.raises(rusteron.ArchiveError) as raised:
            archive.start_position(77)
        error = raised.value
        assert (error.kind, error.relevant_id, error.operation) == ("UnknownRecording", 77, "start_position")
        assert error.code > 0
        with pytest.raises(rusteron.ArchiveError):
            archive.replay(77, "aeron:ipc", 2001)
        with pytest.raises(rusteron.InvalidArgument):
            archive.start_recording(CHANNEL, 1001, source_location="elsewhere")
        with pytest.raises(TypeError, match="no_setting"):
            rusteron.Archive.connect(aeron, no_setting=1)
        archive.close()
        with pytest.raises(rusteron.Closed):
            archive.list_recordings()


def test_replay_merge_joins_live_stream(embedded_archive):
    live, replayed = free_port(), free_port()
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        channel = f"aeron:udp?control=localhost:{live}|control-mode=dynamic|term-length=64k|fc=tagged,g:99901/1,t:5s"
        publication = aeron.add_publication(channel, 1001)
        recorded = f"aeron:udp?endpoint=localhost:0|control=localhost:{live}|control-mode=dynamic|gtag=99901"
        archive.start_recording(recorded, 1001, source_location="remote", auto_stop=True)
        publication.await_connected(DEADLINE)
        sent = []

        def send():
            message = f"message {len(sent)}".encode()
            publication.offer(message, timeout=DEADLINE)
            sent.append(message)

        for _ in range(50):
            send()
        recording_id = archive.await_recording(publication.session_id, DEADLINE)
        archive.await_recorded(recording_id, publication.position, DEADLINE)

        subscription = aeron.add_subscription("aeron:udp?control-mode=manual", 1001)
        merge = archive.replay_merge(
            subscription,
            recording_id,
            f"aeron:udp?session-id={publication.session_id}",
            f"aeron:udp?endpoint=localhost:{replayed}",
            f"aeron:udp?endpoint=localhost:0|control=localhost:{live}|control-mode=dynamic",
        )
        with pytest.raises(rusteron.InUse):
            archive.list_recordings()
        with pytest.raises(rusteron.InUse):
            subscription.poll(lambda message, header: None)
        received = []

        def step():
            if len(received) > len(sent) - 10:
                send()
            merge.poll(lambda message, header: received.append(message), timeout=0.01)
            assert not merge.has_failed
            return merge.is_merged

        until("merge", step)
        assert merge.state == "Merged"
        merge.close()
        merge.close()
        with pytest.raises(rusteron.Closed):
            merge.do_work()
        # Session and subscription are back, and the live stream goes on.
        send()
        received += drain(subscription, len(sent) - len(received))
        assert received == sent
        assert len(archive.list_recordings()) == 1


def test_refused_merge_gives_both_back(embedded_archive):
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        subscription = aeron.add_subscription("aeron:udp?control-mode=manual", 1001)
        with pytest.raises(rusteron.ArchiveError):
            destination = "aeron:udp?endpoint=localhost:0"
            archive.replay_merge(subscription, 5, "nonsense", destination, destination)
        assert archive.list_recordings() == []
        assert subscription.poll(lambda message, header: None) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
def test_interrupt_ends_waiting_request(archive_process):
    child = InterruptedChild(f"""
aeron = rusteron.Aeron(dir={archive_process.aeron_dir!r}, driver_timeout={2 * DEADLINE})
archive = rusteron.Archive.connect(aeron, control_request_channel="aeron:ipc", control_response_channel="aeron:ipc",
                                   message_timeout={2 * DEADLINE})
call = archive.list_recordings
""")
    process = archive_process.process
    process.send_signal(signal.SIGSTOP)
    # One thread takes the signal and stops the others: until then they still answer.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    child.interrupt_its_call()

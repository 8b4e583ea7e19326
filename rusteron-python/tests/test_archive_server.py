import gc
import itertools
import os
import subprocess
import sys
from datetime import timedelta

import pytest

import rusteron
from conftest import DEADLINE, SERVER_SETTINGS, EmbeddedArchive, connect, drain, until

CHANNEL = "aeron:ipc?term-length=64k"


def record(archive, count, stream_id=1001):
    """Records numbered messages. Returns the publication, the recording's id, the messages and the end's position."""
    publication, recording_id = archive.add_recorded_publication(CHANNEL, stream_id)
    sent = [f"message {number}".encode() for number in range(count)]
    for message in sent:
        position = publication.offer(message, timeout=DEADLINE)
    archive.await_recorded(recording_id, position, DEADLINE)
    return publication, recording_id, sent, position


def replayed(archive, recording_id, count):
    with archive.replay(recording_id, CHANNEL, 2001, length="recorded") as replay:
        return drain(replay, count)


def test_embedded_server_records_and_replays():
    with rusteron.ArchiveServer.launch_embedded() as server, rusteron.Aeron(server) as aeron:
        directories = [server.archive_dir, server.aeron_dir]
        assert all(directory.is_dir() for directory in directories)
        assert server.control_channel.startswith("aeron:ipc")
        with connect(aeron) as archive:
            assert archive.archive_id == server.archive_id
            _, recording_id, sent, _ = record(archive, 1000)
            assert replayed(archive, recording_id, 1000) == sent
        assert not server.has_ended
    assert server.is_closed
    assert not any(directory.exists() for directory in directories)


def test_next_server_has_recordings(embedded_archive):
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        _, recording_id, sent, position = record(archive, 3000)
        # The publication and the session are open, and the recording active.
        embedded_archive.server.close()
    assert (embedded_archive.archive_dir / "0-0.rec").exists()

    embedded_archive.launch()
    with embedded_archive.aeron() as aeron, embedded_archive.connect(aeron) as archive:
        (recording,) = archive.list_recordings()
        assert (recording.recording_id, recording.stop_position) == (recording_id, position)
        assert replayed(archive, recording_id, 3000) == sent
        # The driver keeps the closed client's publication until its next timer, within a second.
        _, next_id, _, _ = record(archive, 1, stream_id=1002)
        assert next_id == recording_id + 1


def test_settings_of_every_type(driver, tmp_path):
    settings = {
        "archive_id": 42,
        "mark_file_dir": tmp_path / "mark",
        "record_checksum": "crc-32c",
        "replay_checksum": "crc-32c",
        "file_sync_level": 1,
        "catalog_file_sync_level": 1,
        "catalog_capacity": 1 << 16,
        "connect_timeout": timedelta(seconds=60),
        "replay_linger_timeout": 0.5,
        "idle_strategy": "sleep-ns",
        "recorder_idle_strategy": "yield",
        "replayer_idle_strategy": None,
        "threading_mode": "dedicated",
        "local_control_channel": "aeron:ipc?term-length=128k",
        "control_channel_enabled": False,
        "recording_events_enabled": True,
        "recording_events_channel": "aeron:ipc",
    }
    with rusteron.ArchiveServer.launch(str(tmp_path / "archive"), driver, **settings) as server:
        assert server.archive_id == 42
        assert server.control_channel == "aeron:ipc?term-length=128k"
        assert (tmp_path / "mark" / "archive-mark.dat").exists()
        with rusteron.Aeron(server, driver_timeout=60) as aeron, connect(aeron) as archive:
            _, recording_id, sent, _ = record(archive, 100)
            assert replayed(archive, recording_id, 100) == sent


def test_environment_gives_defaults(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("AERON_ARCHIVE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("AERON_ARCHIVE_CONTROL_CHANNEL", "aeron:udp?endpoint=localhost:0")
    with rusteron.ArchiveServer.launch(driver=driver, threading_mode="shared") as server:
        assert server.archive_dir == tmp_path / "here"
        assert server.control_channel.startswith("aeron:udp")
    monkeypatch.setenv("AERON_ARCHIVE_THREADING_MODE", "INVOKER")
    with pytest.raises(rusteron.InvalidArgument, match="INVOKER"):
        rusteron.ArchiveServer.launch(driver=driver)


def test_mistakes_are_named(driver, embedded_archive, tmp_path, monkeypatch):
    launch, launch_embedded = rusteron.ArchiveServer.launch, rusteron.ArchiveServer.launch_embedded
    for error, text, mistake in [
        (TypeError, "no_setting", lambda: launch_embedded(no_setting=1)),
        # Its recordings would be deleted.
        (TypeError, "archive_dir", lambda: launch_embedded(archive_dir=tmp_path)),
        (TypeError, "segment_file_length", lambda: launch_embedded(segment_file_length="much")),
        (rusteron.InvalidArgument, "segment_file_length=100: ", lambda: launch_embedded(segment_file_length=100)),
        (rusteron.InvalidArgument, 'record_checksum: "md5": .*crc-32c', lambda: launch_embedded(record_checksum="md5")),
        (rusteron.InvalidArgument, "dedicated, shared", lambda: launch_embedded(threading_mode="invoker")),
        (rusteron.InvalidArgument, "control_channel", lambda: launch(tmp_path / "other", driver)),
        (TypeError, "not both", lambda: launch(tmp_path / "other", driver, aeron_dir=driver.aeron_dir)),
        (TypeError, "MediaDriver", lambda: launch(tmp_path / "other", embedded_archive.server)),
    ]:
        with pytest.raises(error, match=text):
            mistake()
    with pytest.raises(rusteron.Error) as raised:
        launch(embedded_archive.archive_dir, driver, **SERVER_SETTINGS)
    assert (raised.value.kind, raised.value.is_transient) == ("ActiveArchive", False)
    (tmp_path / "file").touch()
    with pytest.raises(rusteron.Error, match="file"):
        launch(tmp_path / "file", driver, **SERVER_SETTINGS)
    monkeypatch.setenv("AERON_DRIVER_TIMEOUT", "10")
    with pytest.raises(rusteron.DriverTimeout) as raised:
        launch(tmp_path / "other", aeron_dir=tmp_path / "nowhere", **SERVER_SETTINGS)
    assert raised.value.is_transient


def test_close_raises_what_ended_server(tmp_path):
    def ended():
        driver = rusteron.MediaDriver.launch_embedded()
        server = rusteron.ArchiveServer.launch(tmp_path, driver, **SERVER_SETTINGS)
        driver.close()
        until("end of the server", lambda: server.has_ended)
        return server

    server = ended()
    with pytest.raises(rusteron.Error) as raised:
        server.close()
    assert raised.value.is_transient, raised.value
    assert server.is_closed
    server.close()
    with pytest.raises(rusteron.Closed):
        server.has_ended
    with pytest.raises(rusteron.Error), ended():
        pass
    # That of the block is more telling.
    with pytest.raises(ZeroDivisionError), ended():
        1 / 0


@pytest.mark.parametrize("order", list(itertools.permutations(range(5)))[::11])
def test_closing_in_any_order(order, tmp_path):
    driver = rusteron.MediaDriver.launch_embedded()
    server = rusteron.ArchiveServer.launch(tmp_path, driver, **SERVER_SETTINGS)
    aeron = rusteron.Aeron(server)
    archive = connect(aeron)
    publication, _, _, _ = record(archive, 1)
    handles = [driver, server, aeron, archive, publication]
    for index in order:
        try:
            handles[index].close()
        except rusteron.Error:
            # The driver has ended before the server.
            assert index == 1 and driver.is_closed
        handles[index].close()
    assert all(handle.is_closed for handle in handles)
    assert "is_closed=True" in repr(server)
    with pytest.raises(rusteron.Closed):
        rusteron.Aeron(server)
    with pytest.raises(rusteron.Closed):
        rusteron.ArchiveServer.launch(tmp_path, driver, **SERVER_SETTINGS)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_dropping_in_any_order(order):
    server = rusteron.ArchiveServer.launch_embedded()
    directory = server.archive_dir
    aeron = rusteron.Aeron(server)
    handles = [server, aeron, connect(aeron)]
    del server, aeron
    for index in order[:-1]:
        handles[index] = None
        # The server lives as long as a handle of its client.
        assert directory.exists()
    del handles
    gc.collect()
    until("end of the server", lambda: not directory.exists())


@pytest.mark.parametrize("threading_mode", ["dedicated", "shared"])
def test_interpreter_ends_with_live_server(driver, tmp_path, threading_mode):
    program = f"""
import sys, threading, rusteron
embedded = rusteron.ArchiveServer.launch_embedded(threading_mode={threading_mode!r})
driver = rusteron.MediaDriver.launch_embedded()
server = rusteron.ArchiveServer.launch(sys.argv[1], driver, **{{**{SERVER_SETTINGS}, "threading_mode": {threading_mode!r}}})
for one in [embedded, server]:
    aeron = rusteron.Aeron(one)
    archive = rusteron.Archive.connect(aeron, control_request_channel="aeron:ipc", control_response_channel="aeron:ipc")
    publication, recording_id = archive.add_recorded_publication({CHANNEL!r}, 1001)
    position = publication.offer(b"message", timeout={DEADLINE})
    archive.await_recorded(recording_id, position, {DEADLINE})
    replay = archive.replay(recording_id, "aeron:ipc", 1002)
    assert next(replay) == b"message"

def request():
    while True:
        archive.list_recordings()

threading.excepthook = lambda _: None
threading.Thread(target=request, daemon=True).start()
for directory in [embedded.archive_dir, embedded.aeron_dir, server.aeron_dir]:
    print(directory)
"""
    archive_dir = tmp_path / "archive"
    command = [sys.executable, "-c", program, str(archive_dir)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE)
    assert (finished.returncode, finished.stderr) == (0, "")
    directories = finished.stdout.split()
    assert len(directories) == 3
    assert not any(os.path.exists(directory) for directory in directories)
    archive = EmbeddedArchive(driver, archive_dir)
    with archive.server, archive.aeron() as aeron, archive.connect(aeron) as session:
        (recording,) = session.list_recordings()
        # It was stopped in order.
        assert recording.stop_position == 64 and recording.stop_time is not None

import array
import asyncio
import gc
import itertools
import os
import pickle
import re
import subprocess
import sys

import pytest

import rusteron
from conftest import DEADLINE, until


def make():
    driver = rusteron.MediaDriver.launch_embedded()
    aeron = rusteron.Aeron(driver)
    publication = aeron.add_publication("aeron:ipc", 1001)
    subscription = aeron.add_subscription("aeron:ipc", 1001)
    return driver, aeron, publication, subscription


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::3])
def test_closing_in_any_order(order):
    handles = make()
    for index in order:
        handles[index].close()
        handles[index].close()
    for handle in handles:
        assert handle.is_closed
        assert "is_closed=True" in repr(handle)
    with pytest.raises(rusteron.Closed) as closed:
        handles[2].offer(b"hello")
    assert closed.value.close_cause == handles[1].close_cause == "close() was called"
    with pytest.raises(rusteron.Closed):
        handles[3].poll(print)
    with pytest.raises(rusteron.Closed):
        handles[1].add_publication("aeron:ipc", 1)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::3])
def test_dropping_in_any_order(order):
    handles = list(make())
    directory = handles[0].aeron_dir
    for index in order[:-1]:
        handles[index] = None
        # The driver lives as long as a handle of its client.
        assert directory.exists()
    del handles
    gc.collect()
    until("end of the driver", lambda: not directory.exists())


def threads_and_files():
    files = len(os.listdir("/proc/self/fd"))
    maps = sum("aeron" in line for line in open("/proc/self/maps"))
    return len(os.listdir("/proc/self/task")), files, maps


def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use(handles):
    driver, aeron, publication, subscription = handles
    publication.offer(b"hello", timeout=DEADLINE)
    next(subscription)
    publication.offer(b"hello")
    subscription.poll(lambda message, header: None)
    publication.try_claim(8)
    counter = aeron.add_counter(1001, "forgotten")
    counter.value = 5
    aeron.counters_reader.value(counter.counter_id)
    driver.cnc_file().errors()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
def test_forgotten_handles_leak_nothing():
    use(make())
    gc.collect()
    before = threads_and_files()
    for _ in range(10):
        use(make())
        gc.collect()
    assert threads_and_files() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
def test_messages_leak_no_memory(stream):
    publication, subscription = stream
    buffer, offsets = bytearray(4096), array.array("i", [0] * 11)

    def fail(message, header):
        raise ArithmeticError

    def round_trips():
        for _ in range(2000):
            publication.offer(bytearray(512), timeout=DEADLINE)
            until("window", lambda: publication.available_window > 4096)
            with publication.try_claim(512) as view:
                view[0] = 1
            publication.offer_batch(buffer[:1024], 512)
            try:
                subscription.poll(fail)
            except ArithmeticError:
                pass
            subscription.poll_views(lambda view, header: view.bytes(), 1)
            next(subscription)
            subscription.poll_batch(buffer, offsets)
            try:
                publication.try_claim(1 << 20)
            except rusteron.Error:
                pass

    round_trips()
    before = resident_bytes()
    for _ in range(4):
        round_trips()
    # 8,000 leaked messages or buffers would be 4 MB and more.
    assert resident_bytes() - before < 2 << 20


def test_interpreter_end_removes_directory():
    program = "import rusteron; d = rusteron.MediaDriver.launch_embedded(); a = rusteron.Aeron(d); print(d.aeron_dir)"
    # A reference from a builtin outlives the modules.
    program += "; import builtins; builtins.kept = (d, a)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE)
    assert child.returncode == 0, child.stderr
    assert not os.path.exists(child.stdout.strip())


def test_driver_settings_and_presets():
    settings = {"term_buffer_length": 1 << 17, "client_liveness_timeout": 7.5, "threading_mode": "shared"}
    with rusteron.MediaDriver.launch_embedded("embedded", **settings) as driver:
        assert driver.cnc_file().client_liveness_timeout == 7.5
        with rusteron.Aeron(driver, client_name="tests") as aeron:
            publication = aeron.add_publication("aeron:udp?endpoint=localhost:0|control=localhost:0|control-mode=dynamic", 1)
            assert publication.term_buffer_length == 1 << 17
            assert any(counter.label.endswith("in ns: SHARED") for counter in aeron.counters_reader)
    for error, text, preset, mistake in [
        (TypeError, "no_such_setting", None, {"no_such_setting": 1}),
        (TypeError, "term_buffer_length", None, {"term_buffer_length": "much"}),
        (rusteron.InvalidArgument, "low-latency", "fast", {}),
        (rusteron.InvalidArgument, "dedicated", None, {"threading_mode": "invoker"}),
    ]:
        with pytest.raises(error, match=text):
            rusteron.MediaDriver.launch_embedded(preset, **mistake)


def test_closed_errors_name_the_cause(tmp_path):
    driver = rusteron.MediaDriver.launch(tmp_path / "aeron", term_buffer_sparse_file=True, threading_mode="shared",
                                         shared_idle_strategy="backoff")
    with rusteron.Aeron(dir=tmp_path / "aeron") as aeron:
        publication = aeron.add_publication("aeron:ipc", 1001)
        assert aeron.close_cause is None
        driver.close()
        until("end of the client", lambda: publication.is_closed)
        with pytest.raises(rusteron.Closed) as closed:
            publication.offer(b"hello")
        assert closed.value.close_cause == aeron.close_cause == "the media driver was shut down"
        assert closed.value.close_cause in str(closed.value)


def test_iteration_raises_when_the_driver_ends(tmp_path):
    async def receive(subscription):
        return [message async for message in subscription]

    def ask():
        with rusteron.MediaDriver.launch(tmp_path / "aeron", term_buffer_sparse_file=True, threading_mode="shared",
                                         shared_idle_strategy="backoff"):
            aeron = rusteron.Aeron(dir=tmp_path / "aeron")
            return aeron, aeron.add_subscription("aeron:ipc", 1001)

    aeron, subscription = ask()
    with aeron:
        for iterate in [list, lambda it: list(it.messages(timeout=DEADLINE)), lambda it: asyncio.run(receive(it))]:
            with pytest.raises(rusteron.Closed, match="the media driver was shut down") as closed:
                iterate(subscription)
            assert closed.value.close_cause == "the media driver was shut down"
    assert list(subscription) == []


def test_launch_in_own_directory(tmp_path):
    with rusteron.MediaDriver.launch(tmp_path / "aeron", term_buffer_sparse_file=True, threading_mode="shared",
                                     shared_idle_strategy="backoff") as driver:
        assert driver.aeron_dir == tmp_path / "aeron"
        with rusteron.Aeron(dir=tmp_path / "aeron") as aeron:
            assert aeron.client_id != aeron.next_correlation_id()
    with pytest.raises(rusteron.Error):
        rusteron.Aeron(dir=tmp_path / "nowhere", driver_timeout=0.2)
    with pytest.raises(rusteron.Closed):
        rusteron.Aeron(driver)
    with pytest.raises(TypeError):
        rusteron.Aeron(str(tmp_path))


def test_errors_use_words_of_python(driver, aeron, stream, tmp_path):
    file = tmp_path / "file"
    file.touch()
    publication, _ = stream
    archive = {"control_request_channel": "aeron:ipc", "control_response_channel": "aeron:ipc", "message_timeout": 0.05}
    mistakes = [
        lambda: rusteron.Aeron(dir=file),
        lambda: rusteron.Aeron(dir=tmp_path / "nowhere", driver_timeout=0.01),
        lambda: rusteron.Aeron(driver, idle_sleep_duration="soon"),
        lambda: rusteron.Aeron(driver, no_such_setting=1),
        lambda: rusteron.CncFile(tmp_path),
        lambda: rusteron.MediaDriver.launch(driver.aeron_dir),
        lambda: rusteron.MediaDriver.launch_embedded(term_buffer_length=1000),
        lambda: rusteron.MediaDriver.launch_embedded(threading_mode="invoker"),
        lambda: rusteron.MediaDriver.launch_embedded("fast"),
        lambda: rusteron.ArchiveServer.launch(tmp_path, driver),
        lambda: rusteron.ArchiveServer.launch(file, driver, control_channel_enabled=False),
        lambda: rusteron.ArchiveServer.launch(tmp_path, driver, authenticator_supplier="mine"),
        lambda: rusteron.ArchiveServer.launch_embedded(control_channel="aeron:ipc"),
        lambda: rusteron.ArchiveServer.launch_embedded(control_channel="aeron:udp?endpoint=nowhere"),
        lambda: rusteron.ArchiveServer.launch_embedded(segment_file_length=1000),
        lambda: rusteron.ArchiveServer.launch_embedded(catalog_file_sync_level=0, file_sync_level=1),
        lambda: rusteron.ArchiveServer.launch_embedded(archive_dir=tmp_path),
        lambda: rusteron.Archive.connect(aeron, **archive),
        lambda: rusteron.Archive.connect(aeron, control_request_channel="nonsense"),
        lambda: rusteron.ChannelUri.udp(endpoint="nowhere"),
        lambda: aeron.add_publication("aeron:udp?endpoint=0=localhost", 1),
        lambda: publication.add_destination("aeron:ipc"),
        lambda: publication.try_claim(1 << 20),
        lambda: publication.offer(bytes(1 << 25)),
        lambda: publication.offer_batch(b"abc", 2),
        lambda: publication.offer(b"late", timeout=-1),
    ]
    for number, mistake in enumerate(mistakes):
        with pytest.raises((rusteron.Error, TypeError)) as raised:
            mistake()
            pytest.fail(f"mistake {number} raised nothing")
        assert not re.search(r"::|\bset_|Context", str(raised.value)), str(raised.value)


def test_errors_survive_pickling():
    error = rusteron.BackPressured("text", "BackPressured", 3)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.kind, copy.code) == (rusteron.BackPressured, "text", "BackPressured", 3)


def test_channel_uri_parts():
    channel = rusteron.ChannelUri.udp(endpoint="localhost:40123", term_length="64k", reliable=False)
    assert str(channel) == "aeron:udp?endpoint=localhost:40123|term-length=64k|reliable=false"
    assert channel == rusteron.ChannelUri(str(channel)) and hash(channel) == hash(rusteron.ChannelUri(str(channel)))
    assert channel.parameters["term-length"] == channel["term_length"] == channel.get("term-length") == "64k"
    assert "mtu" not in channel and channel.get("mtu", "none") == "none"
    with pytest.raises(KeyError):
        channel["mtu"]
    assert channel.replace(mtu=1408)["mtu"] == "1408"
    assert rusteron.ChannelUri.ipc().media == "ipc" and channel.media == "udp" and not channel.is_spy
    channel.check_publication()
    with pytest.raises(rusteron.InvalidArgument, match="mtu=7"):
        channel.replace(mtu=7)
    with pytest.raises(rusteron.InvalidArgument, match="mtu=7"):
        rusteron.ChannelUri("aeron:ipc?mtu=7").check_publication()


def test_counters_are_seen_by_readers(driver, aeron):
    with aeron.add_counter(1001, "orders", b"key") as counter:
        counter.value = 40
        assert (counter.increment(), counter.decrement(), counter.get_and_add(2), counter.value) == (40, 41, 40, 42)
        assert counter.compare_and_set(42, 50) and not counter.compare_and_set(42, 60)
        assert counter.propose_max(60) and not counter.propose_max(55) and counter.get_and_set(7) == 60
        for reader in [aeron.counters_reader, rusteron.CncFile(driver.aeron_dir).counters_reader]:
            snapshot = reader.counter(counter.counter_id)
            assert (snapshot.label, snapshot.type_id, snapshot.value) == ("orders", 1001, 7)
            assert snapshot.key[:3] == b"key" and reader.label(counter.counter_id) == "orders"
            found = reader.find_by_type_id_and_registration_id(1001, counter.registration_id)
            assert found == counter.counter_id
            assert counter.counter_id in [it.counter_id for it in reader]
            assert reader.value(reader.max_counter_id) is None
    with pytest.raises(rusteron.Closed):
        counter.increment()


def test_cnc_file_of_running_driver(driver):
    cnc = rusteron.CncFile(driver.aeron_dir, timeout=DEADLINE)
    assert cnc.pid == os.getpid() and cnc.is_active(DEADLINE) and cnc.heartbeat_age < DEADLINE
    assert cnc.errors() == [] and cnc.loss_report() == []
    assert cnc.filename == driver.aeron_dir / "cnc.dat" and len(cnc.version) == 3
    assert cnc.start_time.year >= 2024
    with pytest.raises(rusteron.Error):
        rusteron.CncFile(driver.aeron_dir / "nowhere")


def test_destinations_added_and_removed(aeron):
    publication = aeron.add_publication("aeron:udp?control-mode=manual", 1001)
    subscription = aeron.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 1001)
    (address,) = until("address", lambda: subscription.local_addresses)
    publication.add_destination(f"aeron:udp?endpoint={address}")
    publication.offer(b"hello", timeout=DEADLINE)
    assert next(subscription) == b"hello"
    assert subscription.channel_status == "active" and publication.channel_status == "active"
    publication.remove_destination(f"aeron:udp?endpoint={address}")

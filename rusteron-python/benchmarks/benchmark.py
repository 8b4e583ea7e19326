"""Measures the package: throughput singly and in batches, and round trips to a Rust echo, beside Rust's own.

Publisher and subscriber are processes of their own, because one process has one GIL. The media driver is in a third
process, this one, and idles. Each round of throughput has a driver of its own. ``just python benchmark`` builds Rust's
ends and runs this file.
"""

import argparse
import array
import asyncio
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import rusteron

STREAM = 1001
RESPONSES = 1002
MESSAGE = bytes(range(32))
BATCH = 1024
WAIT = 30


def publish_singly(aeron, seconds):
    publication = aeron.add_exclusive_publication("aeron:ipc", STREAM)
    publication.await_connected(WAIT)
    offer = publication.try_offer
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(10_000):
            while offer(MESSAGE) is None:
                pass
    publication.offer(b"end", timeout=WAIT)


def subscribe_singly(aeron, seconds):
    subscription = aeron.add_subscription("aeron:ipc", STREAM)
    count = 0
    is_ended = False

    def handler(message, header):
        nonlocal count, is_ended
        count += 1
        if len(message) == 3:
            is_ended = True

    while count == 0:
        subscription.poll(handler, 64, timeout=1)
    start, first = time.monotonic(), count
    while not is_ended:
        subscription.poll(handler, 64)
    return (count - first) / (time.monotonic() - start)


def publish_batches(aeron, seconds):
    publication = aeron.add_exclusive_publication("aeron:ipc", STREAM)
    publication.await_connected(WAIT)
    batch = MESSAGE * BATCH
    lengths = array.array("i", [len(MESSAGE)] * BATCH)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            accepted = publication.offer_batch(batch, lengths)
            while accepted < BATCH:
                accepted += publication.offer_batch(batch, lengths, accepted)
    publication.offer(b"end", timeout=WAIT)


def subscribe_batches(aeron, seconds):
    subscription = aeron.add_subscription("aeron:ipc", STREAM)
    buffer = bytearray(len(MESSAGE) * BATCH)
    offsets = array.array("i", [0] * (BATCH + 1))
    count = 0
    while count == 0:
        count = subscription.poll_batch(buffer, offsets, timeout=1)
    start, first = time.monotonic(), count
    while True:
        polled = subscription.poll_batch(buffer, offsets)
        if polled:
            count += polled
            if offsets[polled] - offsets[polled - 1] == 3:
                return (count - first) / (time.monotonic() - start)


def ping(aeron, count, warmup):
    responses = aeron.add_subscription("aeron:ipc", RESPONSES)
    requests = aeron.add_exclusive_publication("aeron:ipc", STREAM)
    requests.await_connected(WAIT)
    responses.await_connected(WAIT)
    offer, poll, clock = requests.offer, responses.poll, time.perf_counter_ns
    times = []

    def handler(message, header):
        pass

    for _ in range(warmup + count):
        start = clock()
        offer(MESSAGE)
        while poll(handler, 1) == 0:
            pass
        times.append(clock() - start)
    return times[warmup:]


async def ping_asyncio(aeron, count, pause):
    """Round trips of a task; `pause` seconds before each, in which the waiting thread falls asleep."""
    responses = aeron.add_subscription("aeron:ipc", RESPONSES)
    requests = aeron.add_exclusive_publication("aeron:ipc", STREAM)
    requests.await_connected(WAIT)
    responses.await_connected(WAIT)
    messages = responses.__aiter__()
    times = []
    for _ in range(count):
        receiving = asyncio.ensure_future(messages.__anext__())
        await asyncio.sleep(pause)
        start = time.perf_counter_ns()
        requests.offer(MESSAGE)
        await receiving
        times.append(time.perf_counter_ns() - start)
    return times


def nanoseconds(call, count=200_000):
    """Duration of a call in a loop, least of five."""
    def once():
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - start) / count

    return min(once() for _ in range(5))


def calls(driver):
    """Durations of single calls, and of the same C call with the GIL and without."""
    with rusteron.Aeron(driver) as aeron:
        subscription = aeron.add_subscription("aeron:ipc", STREAM)
        publication = aeron.add_exclusive_publication("aeron:ipc", STREAM)
        publication.await_connected(WAIT)

        def handler(message, header):
            pass

        def offer_and_poll():
            publication.try_offer(MESSAGE)
            subscription.poll(handler, 1)

        released, held = ctypes.CDLL(None).abs, ctypes.PyDLL(None).abs
        poll = nanoseconds(lambda: subscription.poll(handler, 1))
        print(f"calls, ns: empty poll {poll:.0f}, offer and poll {nanoseconds(offer_and_poll):.0f}, "
              f"release of the GIL {nanoseconds(lambda: released(1)) - nanoseconds(lambda: held(1)):.0f}")


ROLES = {
    "publish_singly": publish_singly,
    "subscribe_singly": subscribe_singly,
    "publish_batches": publish_batches,
    "subscribe_batches": subscribe_batches,
}


def child(role, *arguments):
    return subprocess.Popen([sys.executable, __file__, "--role", role, *map(str, arguments)], stdout=subprocess.PIPE)


def output(process):
    text, _ = process.communicate(timeout=120)
    if process.returncode != 0:
        raise SystemExit(f"a process of the benchmark failed with status {process.returncode}")
    return text


def throughput(mode, seconds):
    # A driver for each round: a subscriber that joins a stream early may find the end of the round before.
    with rusteron.MediaDriver.launch_embedded() as driver:
        dir = str(driver.aeron_dir)
        subscriber = child(f"subscribe_{mode}", dir, seconds)
        publisher = child(f"publish_{mode}", dir, seconds)
        output(publisher)
        return json.loads(output(subscriber))


def round_trips(pinger, dir, echo_program, count, warmup):
    echo = subprocess.Popen([echo_program, "echo", dir], stdout=subprocess.PIPE)
    if pinger == "rust":
        ping = subprocess.Popen([echo_program, "ping", dir, str(count), str(warmup)], stdout=subprocess.PIPE)
        times = [int(line) for line in output(ping).split()]
    else:
        times = json.loads(output(child(pinger, dir, count, warmup)))
    output(echo)
    cuts = statistics.quantiles(times, n=100)
    return {"p50": cuts[49], "p90": cuts[89], "p99": cuts[98]}


def write_results(options, rows):
    """Writes the file that `just benchmark render` reads; rows are a case, a contender, and the runs of each measure."""
    rows = [{"case": case, "contender": who, "measures": dict(sorted(runs.items()))} for case, who, runs in rows]
    results = {
        "benchmark": "python",
        "command": f"just python benchmark --rounds {options.rounds} --seconds {options.seconds:g}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {os.uname().machine}, {os.uname().sysname}",
        "versions": f"Aeron {rusteron.AERON_VERSION}, CPython {sys.version.split()[0]}",
        "rows": rows,
    }
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "python.json").write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--echo", help="the program rust_echo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement of throughput")
    parser.add_argument("--round-trips", type=int, default=100_000)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("target/benchmarks"), help="a directory")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        role, dir, *numbers = options.role
        with rusteron.Aeron(dir=dir) as aeron:
            if role == "ping":
                result = ping(aeron, int(numbers[0]), int(numbers[1]))
            elif role == "ping_asyncio":
                result = asyncio.run(ping_asyncio(aeron, int(numbers[0]), float(numbers[1])))
            else:
                result = ROLES[role](aeron, float(numbers[0]))
        json.dump(result, sys.stdout)
        return

    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    rows = []
    for mode in ["singly", "batches"]:
        rates = [throughput(mode, options.seconds) for _ in range(options.rounds)]
        print(f"throughput {mode}, million messages/s: "
              f"median {statistics.median(rates) / 1e6:.2f} of {', '.join(f'{rate / 1e6:.2f}' for rate in rates)}")
        rows.append((f"throughput, {mode}", "Python", {"msgs/s": rates}))
    with rusteron.MediaDriver.launch_embedded() as driver:
        dir = str(driver.aeron_dir)
        calls(driver)
        if options.echo:
            runs = {"rust": [], "ping": []}
            for _ in range(options.rounds):
                for pinger, results in runs.items():
                    results.append(round_trips(pinger, dir, options.echo, options.round_trips, 10_000))
            for pinger, results in runs.items():
                medians = {name: statistics.median(run[name] for run in results) / 1000 for name in results[0]}
                name = "Rust" if pinger == "rust" else "Python"
                measures = {f"{quantile} µs": [run[quantile] / 1000 for run in results] for quantile in medians}
                rows.append(("round trips", name, measures))
                print(f"round trip {name} to the Rust echo, us: "
                      + ", ".join(f"{name} {value:.2f}" for name, value in medians.items()))
            for pause in [0, 0.005]:
                times = round_trips("ping_asyncio", dir, options.echo, 500, pause)
                print(f"round trip asyncio to the Rust echo, pauses of {pause} s, us: "
                      + ", ".join(f"{name} {value / 1000:.0f}" for name, value in times.items()))
    write_results(options, rows)


if __name__ == "__main__":
    main()

import asyncio

import pytest

from conftest import DEADLINE


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, DEADLINE))


def test_async_for_receives_and_ends(stream):
    publication, subscription = stream

    async def receive():
        return [message async for message in subscription]

    async def main():
        receiving = asyncio.ensure_future(receive())
        for number in range(200):
            publication.offer(bytes([number]), timeout=0)
            if number % 20 == 0:
                await asyncio.sleep(0.005)
        while publication.position > subscription.images()[0].position:
            await asyncio.sleep(0.005)
        subscription.close()
        return await receiving

    assert run(main()) == [bytes([number]) for number in range(200)]


def test_waiting_uses_no_busy_loop(stream):
    _, subscription = stream
    turns = 0

    async def main():
        nonlocal turns
        loop = asyncio.get_running_loop()
        run_once = loop._run_once

        def counted():
            nonlocal turns
            turns += 1
            run_once()

        loop._run_once = counted
        receiving = asyncio.ensure_future(subscription.__aiter__().__anext__())
        await asyncio.sleep(0.3)
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving

    run(main())
    assert turns < 50


def test_cancelled_wait_loses_no_message(stream):
    publication, subscription = stream
    received = []

    async def receive():
        async for message in subscription:
            received.append(message)

    async def main():
        for number in range(100):
            receiving = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            publication.offer(bytes([number]))
            if number % 3 == 0:
                await asyncio.sleep(0.002)
            receiving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await receiving
        receiving = asyncio.ensure_future(receive())
        while len(received) < 100:
            await asyncio.sleep(0.001)
        receiving.cancel()

    run(main())
    assert received == [bytes([number]) for number in range(100)]


def test_many_subscriptions_share_one_thread(aeron):
    subscriptions = [aeron.add_subscription("aeron:ipc", 2000 + number) for number in range(8)]
    publications = [aeron.add_publication("aeron:ipc", 2000 + number) for number in range(8)]

    async def first(subscription):
        async for message in subscription:
            return message

    async def main():
        tasks = [asyncio.ensure_future(first(subscription)) for subscription in subscriptions]
        await asyncio.sleep(0.01)
        for number, publication in enumerate(publications):
            await asyncio.to_thread(publication.offer, bytes([number]), DEADLINE)
        return await asyncio.gather(*tasks)

    assert run(main()) == [bytes([number]) for number in range(8)]


def test_other_tasks_run_during_a_flood(stream):
    publication, subscription = stream

    async def receive():
        async for message in subscription:
            if message == b"end":
                return

    async def main():
        receiving = asyncio.ensure_future(receive())
        # This task offers under back pressure, so the other task has to let it run.
        for _ in range(300):
            while publication.try_offer(bytes(1000)) is None:
                await asyncio.sleep(0)
        while publication.try_offer(b"end") is None:
            await asyncio.sleep(0)
        await receiving

    run(main())

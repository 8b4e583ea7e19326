"""Messages under asyncio."""

import asyncio

# After this many messages without a wait, the event loop gets a turn.
_MESSAGES_PER_TURN = 64


async def messages(subscription):
    """Yields the messages of a subscription, until ``close()``; raises `Closed` if the client ends otherwise.

    No message is taken from the subscription before it is asked for. So a cancelled task loses none.
    """
    loop = asyncio.get_running_loop()
    in_turn = 0
    while True:
        try:
            message = subscription._take_one()
        except StopAsyncIteration:
            return
        if message is None:
            in_turn = 0
            await _message(loop, subscription)
            continue
        yield message
        in_turn += 1
        if in_turn == _MESSAGES_PER_TURN:
            in_turn = 0
            await asyncio.sleep(0)


async def _message(loop, subscription):
    """Waits until there is a message, or the subscription is closed."""
    future = loop.create_future()

    def finish():
        if not future.done():
            future.set_result(None)

    def wake():
        try:
            loop.call_soon_threadsafe(finish)
        except RuntimeError:
            # The loop was closed meanwhile.
            pass

    waiter = subscription._notify(wake)
    try:
        await future
    finally:
        waiter.cancel()

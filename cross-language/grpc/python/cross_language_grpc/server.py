"""The server. Objects belong to all callers."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import service_pb2
import service_pb2_grpc
from cross_language.contract import ARGUMENTS, RESULTS, SMALL_ARRAY_LIMIT, Failure, Malformed, Operation, Status
from cross_language.objects import Objects, add

from . import messages

CODES = {
    Status.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    Status.UNKNOWN_OBJECT: grpc.StatusCode.NOT_FOUND,
    Status.LIMIT_REACHED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Status.CALLBACK_FAILED: grpc.StatusCode.ABORTED,
}


class Refused(Exception):
    """Ends a call with a code and a text."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Operations:
    """The operations of one message, without gRPC's ways of calling."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._lock = threading.Lock()

    def execute(self, operation: Operation, request: Any) -> Any:
        """Returns the result's message. Raises ``Refused``."""
        try:
            argument = messages.body(ARGUMENTS[operation], request)
            if operation is Operation.CREATE or operation is Operation.CALL:
                with self._lock:
                    result = self._objects.execute(operation, argument)
            else:
                # Without objects, calls need not wait for each other.
                result = Objects().execute(operation, argument)
            return messages.message(RESULTS[operation], result)
        except Failure as failure:
            raise Refused(CODES[failure.status], str(failure)) from failure
        except Malformed as error:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error


def callbacks() -> Generator[Any, Any, None]:
    """Gets the caller's messages, and yields those of the server, the result as the last. Raises ``Refused``."""
    first = yield None
    if first is None or first.WhichOneof("message") != "count" or not 0 <= first.count <= SMALL_ARRAY_LIMIT:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"callbacks: 0 to {SMALL_ARRAY_LIMIT}")
    total = 0
    for argument in range(1, first.count + 1):
        answer = yield service_pb2.ServerMessage(callback=argument)
        if answer is None:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "the caller sends no more messages")
        if answer.WhichOneof("message") == "failure":
            raise Refused(CODES[Status.CALLBACK_FAILED], answer.failure)
        if answer.WhichOneof("message") != "answer":
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "no answer to a callback")
        try:
            total = add(total, answer.answer)
        except Failure as failure:
            raise Refused(CODES[failure.status], str(failure)) from failure
    yield service_pb2.ServerMessage(result=total)


class ThreadedService(service_pb2_grpc.ServiceServicer):
    """The operations, each in a thread of the server's pool."""

    def __init__(self) -> None:
        self._operations = Operations()

    def _execute(self, operation: Operation, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return self._operations.execute(operation, request)
        except Refused as refused:
            context.abort(refused.code, str(refused))

    def Callback(self, request_iterator: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Calls the caller back, and adds the answers."""
        steps = callbacks()
        next(steps)
        try:
            message = None
            while message is None or message.WhichOneof("message") != "result":
                message = steps.send(next(request_iterator, None))
                yield message
        except Refused as refused:
            context.abort(refused.code, str(refused))


class AsyncService(service_pb2_grpc.ServiceServicer):
    """The operations on the thread of asyncio's loop."""

    def __init__(self) -> None:
        self._operations = Operations()

    async def _execute(self, operation: Operation, request: Any, context: Any) -> Any:
        try:
            return self._operations.execute(operation, request)
        except Refused as refused:
            await context.abort(refused.code, str(refused))

    async def Callback(self, _request_iterator: Any, context: Any) -> None:
        """Calls the caller back, and adds the answers."""
        steps = callbacks()
        next(steps)
        try:
            message = None
            while message is None or message.WhichOneof("message") != "result":
                received = await context.read()
                message = steps.send(None if received is grpc.aio.EOF else received)
                await context.write(message)
        except Refused as refused:
            await context.abort(refused.code, str(refused))


def _add_methods(name: str, operation: Operation) -> None:
    def method(self: ThreadedService, request: Any, context: grpc.ServicerContext) -> Any:
        return self._execute(operation, request, context)

    async def async_method(self: AsyncService, request: Any, context: Any) -> Any:
        return await self._execute(operation, request, context)

    setattr(ThreadedService, name, method)
    setattr(AsyncService, name, async_method)


for _operation in Operation:
    if _operation is not Operation.CALLBACK:
        _add_methods(_operation.name.title().replace("_", ""), _operation)


def serve_threads(address: str) -> None:
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=[messages.WINDOW_OPTION])
    service_pb2_grpc.add_ServiceServicer_to_server(ThreadedService(), server)
    server.add_insecure_port(address)
    server.start()
    print("serving", flush=True)
    server.wait_for_termination()


async def serve_aio(address: str) -> None:
    server = grpc.aio.server(options=[messages.WINDOW_OPTION])
    service_pb2_grpc.add_ServiceServicer_to_server(AsyncService(), server)
    server.add_insecure_port(address)
    await server.start()
    print("serving", flush=True)
    await server.wait_for_termination()


def main() -> int:
    parser = argparse.ArgumentParser(prog="server", description="Serves the cross-language service over gRPC")
    parser.add_argument("--listen", metavar="ADDRESS", required=True, help="HOST:PORT or unix:PATH")
    parser.add_argument(
        "--kind", choices=["aio", "threads"], default="aio", help="asyncio's loop, or a thread for each call"
    )
    parsed = parser.parse_args()
    if parsed.kind == "aio":
        asyncio.run(serve_aio(parsed.listen))
    else:
        serve_threads(parsed.listen)
    return 0


if __name__ == "__main__":
    sys.exit(main())

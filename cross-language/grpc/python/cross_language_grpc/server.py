"""The server. Objects belong to all callers."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
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


class Service(service_pb2_grpc.ServiceServicer):
    """The operations, each in a thread of the server's pool."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._lock = threading.Lock()

    def _execute(self, operation: Operation, request: Any, context: grpc.ServicerContext) -> Any:
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
            context.abort(CODES[failure.status], str(failure))
        except Malformed as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def Callback(self, request_iterator: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        """Calls the caller back, and adds the answers."""
        try:
            first = next(request_iterator)
            if first.WhichOneof("message") != "count" or not 0 <= first.count <= SMALL_ARRAY_LIMIT:
                raise Failure(Status.INVALID_ARGUMENT, f"callbacks: 0 to {SMALL_ARRAY_LIMIT}")
            total = 0
            for argument in range(1, first.count + 1):
                yield service_pb2.ServerMessage(callback=argument)
                answer = next(request_iterator)
                if answer.WhichOneof("message") == "failure":
                    raise Failure(Status.CALLBACK_FAILED, answer.failure)
                if answer.WhichOneof("message") != "answer":
                    raise Failure(Status.INVALID_ARGUMENT, "no answer to a callback")
                total = add(total, answer.answer)
            yield service_pb2.ServerMessage(result=total)
        except Failure as failure:
            context.abort(CODES[failure.status], str(failure))
        except StopIteration:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the caller sends no more messages")


def _add_method(name: str, operation: Operation) -> None:
    def method(self: Service, request: Any, context: grpc.ServicerContext) -> Any:
        return self._execute(operation, request, context)

    setattr(Service, name, method)


for _operation in Operation:
    if _operation is not Operation.CALLBACK:
        _add_method(_operation.name.title().replace("_", ""), _operation)


def main() -> int:
    parser = argparse.ArgumentParser(prog="server", description="Serves the cross-language service over gRPC")
    parser.add_argument("--listen", metavar="ADDRESS", required=True, help="HOST:PORT or unix:PATH")
    parsed = parser.parse_args()
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    service_pb2_grpc.add_ServiceServicer_to_server(Service(), server)
    server.add_insecure_port(parsed.listen)
    server.start()
    print("serving", flush=True)
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The caller."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import grpc
import service_pb2
import service_pb2_grpc
from cross_language import modes, options
from cross_language.contract import ARGUMENTS, RESULTS, Failure, Malformed, Operation

from . import messages
from .server import CODES

_STATUSES = {code: status for status, code in CODES.items()}


class Caller:
    """A channel of its own. Raises ``Failure`` for an answer that is an error, and ``grpc.RpcError``."""

    def __init__(self, server: str, timeout: float) -> None:
        self._channel = grpc.insecure_channel(
            server,
            options=[
                messages.WINDOW_OPTION,
                # Otherwise, all channels of a process share a connection.
                ("grpc.use_local_subchannel_pool", 1),
                # The path of a Unix socket is no authority of HTTP/2.
                ("grpc.default_authority", "localhost"),
            ],
        )
        self._stub = service_pb2_grpc.ServiceStub(self._channel)
        self._timeout = timeout
        self._methods = {
            operation: getattr(self._stub, operation.name.title().replace("_", "")) for operation in Operation
        }

    def call(self, operation: Operation, argument: Any) -> Any:
        """Calls an operation and waits for its result."""
        try:
            if operation is Operation.CALLBACK:
                return self._callback(argument)
            request = messages.message(ARGUMENTS[operation], argument)
            result = self._methods[operation](request, timeout=self._timeout)
            return messages.body(RESULTS[operation], result)
        except grpc.RpcError as error:
            status = _STATUSES.get(error.code())
            if status is None:
                raise
            raise Failure(status, error.details()) from error

    def _callback(self, count: int) -> int:
        outgoing: SimpleQueue[Any] = SimpleQueue()
        outgoing.put(service_pb2.CallerMessage(count=count))
        # The stream ends with None.
        for message in self._stub.Callback(iter(outgoing.get, None), timeout=self._timeout):
            if message.WhichOneof("message") == "result":
                outgoing.put(None)
                return message.result
            try:
                answer = service_pb2.CallerMessage(answer=modes.square(message.callback))
            except ValueError as error:
                answer = service_pb2.CallerMessage(failure=str(error))
            outgoing.put(answer)
        raise Malformed("the server has sent no result")

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="caller", description="Calls the cross-language service over gRPC")
    parser.add_argument("--server", metavar="ADDRESS", required=True, help="HOST:PORT or unix:PATH")
    parser.add_argument(
        "--timeout-ms", metavar="MS", type=options.at_least(0), default=5_000, help="longest time of a call"
    )
    modes.add_measuring(parser)
    modes.add_modes(parser.add_mutually_exclusive_group(required=True))
    parsed = parser.parse_args()

    @contextmanager
    def connect() -> Iterator[modes.Call]:
        caller = Caller(parsed.server, parsed.timeout_ms / 1000)
        try:
            yield caller.call
        finally:
            caller.close()

    try:
        modes.run(parsed, connect)
    except (Failure, Malformed, OSError, RuntimeError, grpc.RpcError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

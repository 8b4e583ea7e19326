"""The caller over gRPC."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import service_pb2_grpc
from cross_language import modes

WINDOW_OPTION = ("grpc.http2.lookahead_bytes", 1 << 20)
"""The window of HTTP/2's flow control, in bytes: equal in all languages."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="grpc-caller", description="Calls the cross-language service over gRPC")
    parser.add_argument("--server", metavar="ADDRESS", required=True, help="HOST:PORT or unix:PATH")
    modes.add_options(parser)
    parsed = parser.parse_args()
    timeout = parsed.timeout_ms / 1000
    options = [
        WINDOW_OPTION,
        # Otherwise, all channels of a process share a connection.
        ("grpc.use_local_subchannel_pool", 1),
        # The path of a Unix socket is no authority of HTTP/2.
        ("grpc.default_authority", "localhost"),
    ]

    @contextmanager
    def connect() -> Iterator[modes.Call]:
        with grpc.insecure_channel(parsed.server, options=options) as channel:
            stub = service_pb2_grpc.ServiceStub(channel)

            yield lambda request: stub.Call(request, timeout=timeout)

    return modes.run(parsed, connect)


if __name__ == "__main__":
    sys.exit(main())

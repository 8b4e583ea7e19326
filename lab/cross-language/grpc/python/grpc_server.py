"""The server over gRPC, on the thread of asyncio's loop."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import grpc
import service_pb2_grpc
from cross_language import service
from grpc_caller import WINDOW_OPTION


class Service(service_pb2_grpc.ServiceServicer):
    """The operations. A call is a session of its own."""

    async def Call(self, request: Any, _context: Any) -> Any:
        return service.Service(0).respond(request)


async def serve(address: str) -> None:
    server = grpc.aio.server(options=[WINDOW_OPTION])
    service_pb2_grpc.add_ServiceServicer_to_server(Service(), server)
    server.add_insecure_port(address)
    await server.start()
    print("serving", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="grpc-server", description="Serves the cross-language service over gRPC")
    parser.add_argument("--listen", metavar="ADDRESS", required=True, help="HOST:PORT or unix:PATH")
    asyncio.run(serve(parser.parse_args().listen))

"""The cross-language service over gRPC in Python: server and caller."""

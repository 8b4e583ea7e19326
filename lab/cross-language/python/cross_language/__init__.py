"""The cross-language service in Python: the contract's messages, the server and the caller.

``CONTRACT.md`` beside this folder defines operations, messages, errors and deadlines.
"""

"""A Kafka server of an author's own handlers.

server.py        `Server`: handlers, versions, listener, start and stop
link.py          one client's connection: bytes to requests, answers to bytes
node_answers.py  what is answered without a handler: ApiVersions, Metadata, FindCoordinator
groups.py        a group coordinator in real time: tickets to answers, deadlines to a timer

Rules: a connection has one request at a time, as with a Kafka broker; what is untrusted is bounded as in the
broker, by `ConnectionMemory` and `limits`; whatever ends a connection is logged with its reason.
"""

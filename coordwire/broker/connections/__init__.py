"""Clients' connections, and what they share.

    client_link.py        one connection: bytes to requests, answers to bytes; link_state.py: its states
    tls_handshakes.py     clients' TLS handshakes
    other_protocols.py    what begins like another protocol; why TLS handshakes fail
    turns.py              which connection works next
    connection_memory.py  the bytes that all connections hold
    version_fit.py        answers in older versions, and in place of those that are too long
    recorded_connection.py  what is recorded of a connection, without secrets

Rules: nothing that a client sends raises; what no Kafka broker would answer closes the connection.
"""

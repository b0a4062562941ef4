"""The errors of the client, under `ClientError`.

    ClientError
    ├── SettingsError          settings that cannot be used
    ├── BrokerUnreachable      no connection to a broker, or one that ended before the answer
    ├── AuthenticationRefused   the broker or the client refused the other's identity
    ├── VersionUnavailable     no version of an API that both sides have and that can carry the request
    ├── UnreadableAnswer       an answer that is not one of Kafka's
    ├── RequestFailed          a request that could not be sent where it belongs: its coordinator, leader or
    │                          controller is not known
    └── DeadlineExceeded       the time of a request is over

Rule: whatever a broker or the network does ends in one of these. An answer that carries an error code is
an answer, not an error.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from coordwire.errors import CoordwireError


class ClientError(CoordwireError):
    """The base of all errors of the client: a `reason` in words."""

    def reword(self, reason: str) -> None:
        """Give another reason."""
        self.reason = reason
        self.args = (reason,)


class SettingsError(ClientError):
    """Settings that cannot be used; the reason names the setting, never a secret."""


class BrokerUnreachable(ClientError):
    """No connection to a broker, or one that ended before the answer came.

    sent: whether a request may have reached the broker.
    """

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class AuthenticationRefused(ClientError):
    """The broker refused the client's credentials, or could not prove its own."""


class VersionUnavailable(ClientError):
    """No version of an API that the broker and coordwire have and that can carry the request."""


class UnreadableAnswer(ClientError):
    """An answer that is not one of Kafka's, or none to the request."""


class RequestFailed(ClientError):
    """A request that could not be sent where it belongs. code: the error code of the last look-up, 0 for
    none."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class DeadlineExceeded(ClientError):
    """The time of a request is over; the reason has what was tried last."""


MOST_PARTS = 10


def joined(parts: Sequence[str], separator: str) -> str:
    """The first parts of an error's text that a broker can make long, and how many more there are."""
    omitted = len(parts) - MOST_PARTS
    return separator.join(parts[:MOST_PARTS]) + (f"{separator}{omitted:,} more" if omitted > 0 else "")


def located(error: BaseException, place: str, *, limit_ms: int, has_tls: bool) -> BaseException:
    """The client's error for one that opening a connection has ended with, with the place; another error as
    it is. limit_ms: the time that opening had. has_tls: whether it was one with TLS."""
    match error:
        case ClientError():
            error.reword(f"{place}: {error.reason}")
            return error
        case ssl.SSLError():
            return BrokerUnreachable(f"{place}: {_tls_reason(error)}")
        case TimeoutError() if error.errno is None:
            return BrokerUnreachable(f"{place}: no connection within {limit_ms} ms")
        case ConnectionError() if has_tls and not isinstance(error, ConnectionRefusedError):
            return BrokerUnreachable(f"{place}: {_NO_TLS}")
        case OSError():
            return BrokerUnreachable(f"{place}: {error.strerror or error or type(error).__name__}")
        case ValueError() | OverflowError():  # a host or port that no broker can have
            return BrokerUnreachable(f"{place}: not an address: {error}")
    return error


_NO_TLS = (
    "the peer ended the connection where TLS begins; "
    "for a listener without TLS: security.protocol=PLAINTEXT or SASL_PLAINTEXT"
)


def _tls_reason(error: ssl.SSLError) -> str:
    """What went wrong with TLS, and what to do about it where that is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not trusted: {error.verify_message}"
    reason = (error.reason or str(error)).replace("_", " ").lower()
    has_ended = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    if has_ended or error.reason == "WRONG_VERSION_NUMBER":
        return _NO_TLS
    return f"TLS failed: {reason}"

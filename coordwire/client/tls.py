"""TLS of a client: which certificates it trusts, and its own certificate.

Strategy: Python's `ssl` takes PEM; stores in PKCS12, as keytool has made them since Java 9 also where the
file's name ends in .jks, are opened by the package cryptography and handed over as PEM. Rules: versions
before TLS 1.2 are refused; the broker's certificate and name are checked unless the user turns that off; a
private key is on disk, in a file that only its owner can read, for no longer than the call that loads it.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from coordwire.client.errors import SettingsError

_JKS = b"\xfe\xed\xfe\xed"
_PEM = b"-----BEGIN"


def tls_context(
    *,
    ca: str | Path | None = None,
    ca_pem: str | None = None,
    certificate: str | Path | None = None,
    certificate_pem: str | None = None,
    key_pem: str | None = None,
    key: str | Path | None = None,
    key_password: str | None = None,
    check_hostname: bool = True,
) -> ssl.SSLContext:
    """A context for connections to brokers.

    ca, ca_pem: what to trust, a PEM file or its text; None for what the system trusts. certificate, key: the
    client's own chain and private key as PEM files (one file may hold both); certificate_pem, key_pem: their
    texts instead. key_password: of an encrypted key. check_hostname: whether the broker's certificate must
    name the host.

    Raises `SettingsError` for what cannot be loaded.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_hostname
    try:
        if ca is not None or ca_pem is not None:
            context = _trusting(ca, ca_pem, check_hostname)
        if certificate_pem is not None:
            _load_texts(context, certificate_pem, key_pem or "", key_password)
        elif certificate is not None:
            context.load_cert_chain(certificate, key, password=key_password or "")
    except FileNotFoundError as error:
        raise SettingsError(f"no such file: {error.filename or ca or certificate}") from None
    except (ValueError, TypeError) as error:  # text that is not ASCII, a password that is too long
        raise SettingsError(f"a certificate or key cannot be loaded: {type(error).__name__}") from None
    except ssl.SSLError as error:
        reason = (error.reason or "it has no PEM").replace("_", " ").lower()
        raise SettingsError(f"a certificate or key cannot be loaded: {reason}") from None
    except OSError as error:
        raise SettingsError(f"a certificate or key cannot be read: {error.strerror or error}") from None
    return context


def _trusting(ca: str | Path | None, ca_pem: str | None, check_hostname: bool) -> ssl.SSLContext:
    """A context that trusts these authorities and no others."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_hostname
    context.load_verify_locations(cafile=ca, cadata=ca_pem)
    return context


def _load_texts(context: ssl.SSLContext, certificate: str, key: str, password: str | None) -> None:
    """Load a chain and its key from texts: `ssl` reads them from a file only."""
    number, name = tempfile.mkstemp(suffix=".pem")  # readable by its owner only
    try:
        with os.fdopen(number, "w", encoding="ascii") as stream:
            stream.write(f"{key}\n{certificate}\n")
        context.load_cert_chain(name, password=password or "")
    finally:
        os.unlink(name)


def pem_of_store(location: str, password: str | None, name: str) -> tuple[str, str]:
    """The certificates and the private key of a store, as PEM; the key "" where there is none.

    location: of a PEM file, or PKCS12; name: of the setting that has it. Raises `SettingsError`.
    """
    try:
        data = Path(location).read_bytes()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{name}: {getattr(error, 'strerror', None) or 'not a path'}") from None
    if _PEM in data:
        return data.decode("ascii", "replace"), ""
    if data.startswith(_JKS):
        raise SettingsError(
            f"{name}: a store in the format JKS, which only Java reads; convert it: "
            "keytool -importkeystore -srckeystore store.jks -destkeystore store.p12 -deststoretype PKCS12"
        )
    return _pem_of_pkcs12(data, password, name)


def _pem_of_pkcs12(data: bytes, password: str | None, name: str) -> tuple[str, str]:
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise SettingsError(
            f"{name}: a store in PKCS12 needs pip install 'coordwire[pkcs12]' (PEM does without)"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise SettingsError(f"{name}: not a store in PKCS12, or the password is wrong") from None
    certificates = ([store.cert] if store.cert else []) + store.additional_certs
    chain = "".join(item.certificate.public_bytes(Encoding.PEM).decode() for item in certificates)
    if store.key is None:
        return chain, ""
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return chain, key.decode()

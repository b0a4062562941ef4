"""Files of properties as Java writes and reads them, and the login modules of `sasl.jaas.config`.

Sources: `java.util.Properties.load` for the format, Kafka's `JaasConfig` for logins, its providers for
`${provider:path:key}` (KIP-297, KIP-421, KIP-887). Rules: an error names the line or the setting, and never
repeats a value, which may be a secret; a provider is used only where the file declares it, as in Kafka.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coordwire.client.errors import SettingsError

__all__ = ["Login", "parse_login", "parse_properties", "read_properties"]

_LARGEST = 1 << 20
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_PROVIDERS = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")


def read_properties(path: str | Path) -> dict[str, str]:
    """The properties of a file, with the values of the providers that it declares.

    Raises `SettingsError`.
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise SettingsError(f"{path}: expected at most {_LARGEST} bytes of properties")
    return _resolved(parse_properties(data.decode("latin-1")))


def parse_properties(text: str) -> dict[str, str]:
    """The properties of a text, as `java.util.Properties` reads it. Raises `SettingsError`."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        name, value = _split(line)
        properties[_unescaped(name)] = _unescaped(value)
    return properties


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and leading blanks, with those that continue them."""
    lines: list[str] = []
    continued = False
    natural_lines = re.split(r"\r\n|\r|\n", text)
    if not natural_lines[-1]:
        natural_lines.pop()  # what follows the last end of line is not a line
    for natural in natural_lines:
        line = natural.lstrip(_BLANK)
        if not continued and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        part = line[:-1] if slashes % 2 else line
        if continued:
            lines[-1] += part
        else:
            lines.append(part)
        continued = bool(slashes % 2)
    last = lines[-1:] if continued else []  # as Java has it, also where it is empty
    return [line for line in lines[: len(lines) - len(last)] if line] + last


def _split(line: str) -> tuple[str, str]:
    """A line's name and value, both still with escapes."""
    end = 0
    while end < len(line) and line[end] not in f"{_BLANK}=:":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANK)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANK)
    return line[:end], value


def _unescaped(text: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                    raise SettingsError("expected 4 hexadecimal digits after \\u in a property")
                char, position = chr(int(digits, 16)), position + 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break
        parts.append(char)
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- providers of values ---


def _resolved(properties: dict[str, str]) -> dict[str, str]:
    """The properties with `${provider:path:key}` replaced, for the providers that are declared."""
    aliases = [alias.strip() for alias in properties.get("config.providers", "").split(",") if alias.strip()]
    providers: dict[str, str] = {}
    for alias in aliases:
        name = properties.get(f"config.providers.{alias}.class", "").rpartition(".")[2]
        if name not in _PROVIDERS:
            expected = ", ".join(_PROVIDERS)
            raise SettingsError(f"config.providers.{alias}.class: expected one of {expected}")
        providers[alias] = name
    if not providers:
        return properties
    files: dict[str, dict[str, str]] = {}

    def value(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        return (
            match[0] if provider is None else _provided(provider, match[2] or "", match[3], files, match[0])
        )

    return {name: _VARIABLE.sub(value, text) for name, text in properties.items()}


def _provided(provider: str, path: str, key: str, files: dict[str, dict[str, str]], variable: str) -> str:
    """A provider's value; the variable itself where it has none, as in Kafka."""
    if provider == "EnvVarConfigProvider":
        return os.environ.get(key, variable)
    try:
        if provider == "DirectoryConfigProvider":
            return (Path(path) / Path(key).name).read_text(encoding="utf-8")
        if path not in files:
            files[path] = parse_properties(Path(path).read_bytes().decode("latin-1"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"{variable}: {reason}") from None
    return files[path].get(key, variable)


# --- logins ---


@dataclass(frozen=True, slots=True)
class Login:
    """A login module of `sasl.jaas.config`: the last part of its class, and its options."""

    module: str
    options: Mapping[str, str] = field(repr=False)


_JAAS_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[A-Za-z_$\u00a0-\uffff\U00010000-\U0010ffff-][\w$.\u00a0-\uffff-]*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_JAAS_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_JAAS_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


def parse_login(text: str) -> Login:
    """The only login module of a JAAS configuration. Raises `SettingsError`."""
    tokens = _jaas_tokens(text)
    logins: list[Login] = []
    while tokens:
        logins.append(_login(tokens))
    if len(logins) != 1:
        raise SettingsError(f"sasl.jaas.config: expected one login module, got {len(logins)}")
    return logins[0]


def _jaas_tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of each token, the last first."""
    tokens: list[tuple[str, str]] = []
    for match in _JAAS_TOKEN.finditer(text):
        if match.lastgroup == "quoted":
            tokens.append(("word", _JAAS_ESCAPE.sub(_jaas_unescaped, match[0][1:-1])))
        elif match.lastgroup is not None:
            tokens.append((match.lastgroup, match[0]))
    return tokens[::-1]


def _jaas_unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape.isdigit() and escape[0] < "8" else _JAAS_ESCAPES.get(escape, escape)


def _login(tokens: list[tuple[str, str]]) -> Login:
    module = _word(tokens, "a login module")
    if _word(tokens, "a control flag").lower() not in _FLAGS:
        raise SettingsError(f"sasl.jaas.config: expected {', '.join(_FLAGS)} after the login module")
    options: dict[str, str] = {}
    while tokens and tokens[-1] != ("sign", ";"):
        name = _word(tokens, "an option")
        if not tokens or tokens.pop() != ("sign", "="):
            raise SettingsError(f"sasl.jaas.config: expected = after {name}")
        options[name] = _word(tokens, f"a value of {name}, in quotes where it has more than letters,")
    if not tokens:
        raise SettingsError("sasl.jaas.config: expected ; at the end")
    tokens.pop()
    return Login(module.rpartition(".")[2], options)


def _word(tokens: list[tuple[str, str]], expected: str) -> str:
    if not tokens or tokens[-1][0] != "word":
        raise SettingsError(f"sasl.jaas.config: expected {expected}")
    return tokens.pop()[1]

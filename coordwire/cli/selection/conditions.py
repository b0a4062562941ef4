"""A filter expression to a condition that an entry meets or not.

Strategy: the syntax tree becomes functions of an entry's fields, once; errors that need no frame
(an unknown field, a text compared with a number, an invalid pattern) are reported then. Rules:

- A comparison is true where any value of the field meets it: `body.topics[].name == "a"` where any topic is
  a, `!=` where any isn't. `not (… == …)` means that none is.
- A field that a frame doesn't have, null and what is redacted have no value: no comparison is true of them
  but `== null`; `!= null` is true where there is a value.
- A field alone is true where it has a value that is not false.
- Numbers compare with numbers; fields for whose numbers Kafka has names compare with those too. Durations
  need a unit. Times compare with what `--since` takes.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from coordwire.capture.answer_errors import AnswerError
from coordwire.capture.entries import FrameEntry
from coordwire.capture.printable import shown
from coordwire.cli.selection import fields as known
from coordwire.cli.selection.expressions import (
    Comparison,
    Constant,
    ConstantRange,
    FilterError,
    Membership,
    Node,
    Not,
    Operator,
    Present,
    Several,
    parse,
)
from coordwire.cli.selection.fields import EntryFields, FieldPath, Sort, resolve
from coordwire.cli.selection.names import api
from coordwire.cli.selection.times import DAY, Moment, moment
from coordwire.codec.names import suggestion
from coordwire.dialects import find_call
from coordwire.enums import ErrorCode
from coordwire.patterns import InvalidPattern, RegularExpression

MAX_INSTRUCTIONS = 4_000
"""Of a regular expression: a text of a frame is longer than a topic's name."""

Pattern = partial(RegularExpression, anywhere=True, max_instructions=MAX_INSTRUCTIONS)
Condition = Callable[[EntryFields], bool]
Test = Callable[[Any], bool]
"""Whether one value meets a comparison."""

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda entry_value, constant: entry_value == constant,
    "!=": lambda entry_value, constant: entry_value != constant,
    "<": lambda entry_value, constant: entry_value < constant,
    "<=": lambda entry_value, constant: entry_value <= constant,
    ">": lambda entry_value, constant: entry_value > constant,
    ">=": lambda entry_value, constant: entry_value >= constant,
}  # fmt: skip

_NUMBERS: tuple[Sort, ...] = ("number", "duration")
_TEXTS: tuple[Sort, ...] = ("text", "name")


def condition(text: str) -> Condition:
    """The condition that an expression says. Raises `FilterError`."""
    return _condition(parse(text), _Clock())


Precondition = Callable[[FrameEntry], bool]
"""What a Kafka frame meets at least, if it meets a condition. It looks at bytes and decodes nothing."""


def precondition(text: str) -> Precondition | None:
    """The precondition of an expression that has a condition; None where none is known."""
    return _precondition(parse(text))


def _precondition(node: Node) -> Precondition | None:
    if isinstance(node, Several):
        parts = [_precondition(part) for part in node.parts]
        known_parts = [part for part in parts if part is not None]
        if not known_parts or (node.word == "or" and len(known_parts) < len(parts)):
            return None
        every = all if node.word == "and" else any
        return lambda entry: every(part(entry) for part in known_parts)
    if isinstance(node, Comparison) and node.operator in ("==", "contains"):
        constants: Sequence[Constant | ConstantRange] = [node.value]
    elif isinstance(node, Membership):
        constants = node.values
    else:
        return None
    texts = [constant.value for constant in constants if isinstance(constant, Constant)]
    needles = [text.encode("utf-8", "replace") for text in texts if isinstance(text, str)]
    if len(needles) < len(constants):
        return None
    return _holding(resolve(node.field), needles)


def _holding(field: FieldPath, needles: list[bytes]) -> Precondition | None:
    """Whether a text that a field must have is in the bytes of the message that has it."""
    if field.may_be_asked:
        return None
    steps = field.steps
    if field.path == "group":
        return lambda entry: any(
            text in entry.body or (entry.request is not None and text in entry.request.body)
            for text in needles
        )
    if not steps or field.sort != "text":
        return None
    if len(needles) != 1:
        return lambda entry: (
            any(text in entry.body for text in needles)
            or not known.is_text(entry.api_key, entry.direction, steps)
        )
    (needle,) = needles
    return lambda entry: needle in entry.body or not known.is_text(entry.api_key, entry.direction, steps)


class _Clock:
    """Times of day are those of the day of the first entry that is asked about."""

    def __init__(self) -> None:
        self._midnight: int | None = None

    def absolute(self, limit: Moment, time_ns: int) -> int:
        if not limit.clock:
            return limit
        if self._midnight is None:
            self._midnight = time_ns - time_ns % DAY
        return limit + self._midnight


def _condition(node: Node, clock: _Clock) -> Condition:
    if isinstance(node, Several):
        parts = [_condition(part, clock) for part in node.parts]
        if node.word == "and":
            return lambda fields: all(part(fields) for part in parts)
        return lambda fields: any(part(fields) for part in parts)
    if isinstance(node, Not):
        condition_ = _condition(node.operand, clock)
        return lambda fields: not condition_(fields)
    field = resolve(node.field)
    if isinstance(node, Present):
        return lambda fields: any(value is not None and value is not False for value in field.values(fields))
    if field.sort == "struct":
        raise FilterError(
            f"{field.path} is not a single value: name a field inside", node.field.start, node.field.end
        )
    if isinstance(node, Comparison):
        return _comparison(node, field, clock)
    return _membership(node, field, clock)


def _comparison(node: Comparison, field: FieldPath, clock: _Clock) -> Condition:
    value = node.value
    if value.value is None:
        if node.operator not in ("==", "!="):
            raise FilterError("null is compared with == and != only", value.start, value.end)
        none = node.operator == "=="
        return lambda fields: none != any(entry_value is not None for entry_value in field.values(fields))
    return _any_value(field, _test(field, node.operator, value, clock))


def _any_value(field: FieldPath, test: Callable[[EntryFields, Any], bool]) -> Condition:
    return lambda fields: any(test(fields, value) for value in field.values(fields) if value is not None)


def _membership(node: Membership, field: FieldPath, clock: _Clock) -> Condition:
    tests = []
    for value in node.values:
        if isinstance(value, ConstantRange):
            tests.append(_between(field, value, clock))
        elif value.value is None:
            raise FilterError("null cannot be in a list; compare with == null", value.start, value.end)
        else:
            tests.append(_test(field, "==", value, clock))
    return _any_value(field, lambda fields, value: any(test(fields, value) for test in tests))


def _between(field: FieldPath, span: ConstantRange, clock: _Clock) -> Callable[[EntryFields, Any], bool]:
    low, high = _test(field, ">=", span.low, clock), _test(field, "<=", span.high, clock)
    return lambda fields, value: low(fields, value) and high(fields, value)


# --- one value with one constant ---


def _test(
    field: FieldPath, operator: Operator, constant: Constant, clock: _Clock
) -> Callable[[EntryFields, Any], bool]:
    """The test that a value must pass; refuses what could never be true."""
    if operator == "=~":
        return _matching(field, constant)
    if operator == "contains":
        return _containing(field, constant)
    if field.sort == "time":
        return _timed(field, operator, constant, clock)
    value, order = constant.value, _ORDER[operator]
    if isinstance(value, bool):
        _expect(field, constant, "boolean")
        return lambda fields, entry_value: isinstance(entry_value, bool) and order(entry_value, value)
    if isinstance(value, str):
        return _texts(field, operator, constant)
    _check_unit(field, constant)
    _expect(field, constant, *_NUMBERS, "error")
    if field.sort == "error":
        return lambda fields, entry_value: order(entry_value.code, value)
    return lambda fields, entry_value: _is_number(entry_value) and order(entry_value, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_unit(field: FieldPath, constant: Constant) -> None:
    if field.sort == "duration" and constant.unit != "duration":
        raise FilterError(f"{field.path} needs a unit: ns, us, ms, s, min or h", constant.start, constant.end)
    if field.sort != "duration" and constant.unit == "duration":
        raise FilterError(f"{field.path} is not a duration", constant.start, constant.end)


def _expect(field: FieldPath, constant: Constant, *sorts: Sort) -> None:
    """Refuse a constant that no value of the field can equal."""
    if field.sort in (*sorts, "any"):
        return
    if field.steps and known.sorts(field.steps) & set(sorts):
        return
    article = {
        "number": "a number", "duration": "a duration such as 100ms", "text": "a text in quotes",
        "name": "a text in quotes", "boolean": "true or false", "time": "a time in quotes",
        "error": "a number or a name in quotes",
    }.get(field.sort, "another value")  # fmt: skip
    raise FilterError(f"{field.path} is compared with {article}", constant.start, constant.end)


def _texts(field: FieldPath, operator: Operator, constant: Constant) -> Callable[[EntryFields, Any], bool]:
    value, order = str(constant.value), _ORDER[operator]
    if field.sort == "error":
        _known_error(constant)
        folded = value.upper()
        return lambda fields, entry_value: order(entry_value.name, folded)
    if field.sort == "name":
        if field.path.rpartition(".")[2] == "api":
            _known_api(constant)
        folded = value.casefold()
        return lambda fields, entry_value: order(str(entry_value).casefold(), folded)
    if field.sort == "number" and field.steps and known.has_names(field.steps):
        if known.holds_errors(field.steps):
            _known_error(constant)
        folded = value.upper()
        return lambda fields, entry_value: (
            (name := _name(field, fields, entry_value)) is not None and order(name, folded)
        )
    _expect(field, constant, *_TEXTS)
    return lambda fields, entry_value: isinstance(entry_value, str) and order(entry_value, value)


def _name(field: FieldPath, fields: EntryFields, value: Any) -> str | None:
    return field.named(fields, value) if isinstance(value, int) else None


def _known_api(constant: Constant) -> None:
    text = str(constant.value)
    if find_call(text):
        return
    try:
        api(text)
    except ArgumentTypeError as error:
        raise FilterError(str(error), constant.start, constant.end) from None
    if text.lstrip("-").isdecimal():
        raise FilterError("api is a name; apiKey has the number", constant.start, constant.end)


def _known_error(constant: Constant) -> None:
    text = str(constant.value)
    names = {code.name for code in ErrorCode}
    if text.upper() not in names and not text.upper().startswith("UNKNOWN_"):
        hint = suggestion(text, names)
        raise FilterError(f"no error is called {shown(text)!r}{hint}", constant.start, constant.end)


def _text_of(field: FieldPath, fields: EntryFields, value: Any) -> str | None:
    """A value as the text that is searched; None for none."""
    if isinstance(value, str):
        return value
    if isinstance(value, AnswerError):
        return value.name
    if field.steps and isinstance(value, int) and not isinstance(value, bool):
        return field.named(fields, value)
    return None


def _only_text(field: FieldPath, constant: Constant, operator: str) -> None:
    if not isinstance(constant.value, str):
        raise FilterError(f"{operator} takes a text in quotes", constant.start, constant.end)
    if field.sort not in (*_TEXTS, "error") and not (
        field.steps and (known.sorts(field.steps) & {"text"} or known.has_names(field.steps))
    ):
        raise FilterError(f"{field.path} has no text to search", constant.start, constant.end)


def _containing(field: FieldPath, constant: Constant) -> Callable[[EntryFields, Any], bool]:
    _only_text(field, constant, "contains")
    value = str(constant.value)
    return lambda fields, entry_value: (
        (text := _text_of(field, fields, entry_value)) is not None and value in text
    )


def _matching(field: FieldPath, constant: Constant) -> Callable[[EntryFields, Any], bool]:
    _only_text(field, constant, "=~")
    try:
        pattern = Pattern(constant.raw)
    except InvalidPattern as error:
        start = constant.start + 1 + error.position
        raise FilterError(f"in the regular expression: {error.reason}", start, start + 1) from None
    return lambda fields, entry_value: (
        (text := _text_of(field, fields, entry_value)) is not None and pattern.matches(text)
    )


def _timed(
    field: FieldPath, operator: Operator, constant: Constant, clock: _Clock
) -> Callable[[EntryFields, Any], bool]:
    if not isinstance(constant.value, str):
        raise FilterError(
            f'{field.path} is compared with a time in quotes: "08:17:12"', constant.start, constant.end
        )
    try:
        limit = moment(constant.value)
    except ArgumentTypeError as error:
        raise FilterError(str(error), constant.start, constant.end) from None
    order = _ORDER[operator]
    return lambda fields, entry_value: order(entry_value, clock.absolute(limit, entry_value))

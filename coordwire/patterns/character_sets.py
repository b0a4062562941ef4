r"""Sets of characters: ranges, the classes of Perl (`\d`), POSIX (`[:alpha:]`) and Unicode (`\pL`), and case.

Strategy: a set's ranges are merged and sorted once, so that a character is found in them by bisection,
however many there were in the pattern. Where case does not count, the forms of a character are what is
looked up; a set is not widened by them. Unicode classes are tests, since tables of them would cost far more
than the few characters that are ever tested.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

from coordwire._dataclasses import dataclass

CharacterRanges = tuple[tuple[str, str], ...]
Bounds = tuple[int, ...]
"""Of sorted ranges without overlap: the first code point of one, the one after its last, and so on."""

_CODE_POINTS = 0x110000
_CASED = 0x1E944
"""No character from here on has a case."""

_FOLDED_TO_ASCII = {"k": "\N{KELVIN SIGN}", "s": "\N{LATIN SMALL LETTER LONG S}"}


def case_forms(character: str) -> tuple[str, ...]:
    """A character and those that differ from it in case only: Unicode's simple case folding."""
    if not character.isascii():
        return _case_orbits().get(character, (character,))
    lower = character.lower()
    upper = lower.upper()
    if lower == upper:
        return (character,)
    return (lower, upper, _FOLDED_TO_ASCII[lower]) if lower in _FOLDED_TO_ASCII else (lower, upper)


@cache
def _case_orbits() -> dict[str, tuple[str, ...]]:
    orbits: defaultdict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(_CASED)):
        upper = character.upper()
        folded = (upper if len(upper) == 1 else character).lower()
        if len(folded) != 1 or (folded.isascii() and _FOLDED_TO_ASCII.get(folded) != character):
            folded = character.lower() if character.isascii() else character
        orbits[folded].append(character)
    return {character: tuple(orbit) for orbit in orbits.values() if len(orbit) > 1 for character in orbit}


def _merged(ranges: Iterable[tuple[int, int]]) -> Bounds:
    bounds: list[int] = []
    for low, high in sorted(ranges):
        if bounds and low <= bounds[-1]:
            bounds[-1] = max(bounds[-1], high + 1)
        else:
            bounds += (low, high + 1)
    return tuple(bounds)


def _inverted(bounds: Bounds) -> Iterable[tuple[int, int]]:
    edges = (0, *bounds, _CODE_POINTS)
    return ((low, after - 1) for low, after in zip(edges[::2], edges[1::2], strict=True) if low < after)


@dataclass(frozen=True, slots=True)
class CharacterPart:
    """A part of a set: characters in ranges, or those of a Unicode class; or all others, if negated."""

    ranges: CharacterRanges = ()
    unicode_class: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CharacterSet:
    """Characters that one of the parts has; or none of them, if negated.

    exact: ranges in which a character is looked up; folded: ranges in which all its forms are; classes:
    Unicode's, each with whether it is negated.
    """

    exact: Bounds = ()
    folded: Bounds = ()
    classes: tuple[tuple[str, bool], ...] = ()
    folds: bool = False
    negated: bool = False

    @classmethod
    def of(cls, parts: Iterable[CharacterPart], *, folds: bool, negated: bool = False) -> CharacterSet:
        exact: list[tuple[int, int]] = []
        folded: list[tuple[int, int]] = []
        classes: dict[tuple[str, bool], None] = {}
        for part in dict.fromkeys(parts):
            if part.unicode_class is not None:
                classes[part.unicode_class, part.negated] = None
            elif part.negated:
                exact += _other_cases(part.ranges, folds)
            else:
                ranges = folded if folds else exact
                ranges += ((ord(low), ord(high)) for low, high in part.ranges)
        return cls(_merged(exact), _merged(folded), tuple(classes), folds, negated)

    @property
    def work(self) -> int:
        """What `has` costs at most, beside the logarithm of its ranges."""
        return 1 + len(self.classes)

    def has(self, character: str, forms: tuple[str, ...]) -> bool:
        """forms: those of the character in case."""
        return self._has(character, forms if self.folds else (character,)) is not self.negated

    def _has(self, character: str, forms: tuple[str, ...]) -> bool:
        return (
            bool(bisect_right(self.exact, ord(character)) & 1)
            or any(bisect_right(self.folded, ord(form)) & 1 for form in forms)
            or any(_in_class(name, character, forms) is not negated for name, negated in self.classes)
        )


@cache
def _other_cases(ranges: CharacterRanges, folds: bool) -> tuple[tuple[int, int], ...]:
    """What is outside of one of the small classes, and, where case does not count, outside of its forms."""
    bounds = [(ord(low), ord(high)) for low, high in ranges]
    if folds:
        bounds += [
            (ord(form), ord(form))
            for low, high in ranges
            for code in range(ord(low), ord(high) + 1)
            for form in case_forms(chr(code))
        ]
    return tuple(_inverted(_merged(bounds)))


ANY = CharacterSet(negated=True)
NOT_NEWLINE = CharacterSet(exact=(ord("\n"), ord("\n") + 1), negated=True)

_DIGIT = ("0", "9")
_UPPER = ("A", "Z")
_LOWER = ("a", "z")
_UNDERSCORE = ("_", "_")

PERL_CLASSES: dict[str, CharacterRanges] = {
    "d": (_DIGIT,),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "w": (_DIGIT, _UPPER, _UNDERSCORE, _LOWER),
}
POSIX_CLASSES: dict[str, CharacterRanges] = {
    "alnum": (_DIGIT, _UPPER, _LOWER),
    "alpha": (_UPPER, _LOWER),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (_DIGIT,),
    "graph": (("!", "~"),),
    "lower": (_LOWER,),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (_UPPER,),
    "word": (_DIGIT, _UPPER, _UNDERSCORE, _LOWER),
    "xdigit": (_DIGIT, ("A", "F"), ("a", "f")),
}

_CATEGORIES = frozenset(
    """
    Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf P S C Z L M N
    """.split()  # noqa: SIM905
)
_TWO_CASES = 2

_SCRIPTS = frozenset(
    """
    Common Inherited Bamum Arabic Lisu Armenian Bengali Old_South_Arabian Bopomofo Cherokee Coptic
    Cyrillic Deseret Devanagari Ethiopic Georgian Gothic Greek Gujarati Gurmukhi Han Hangul Hebrew
    Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Ogham Old_Italic Oriya Runic
    Sinhala Syriac Tamil Telugu Thaana Thai Tibetan Canadian_Aboriginal Yi Tagalog Hanunoo Buhid
    Tagbanwa Braille Cypriot Limbu Linear_B Osmanya Shavian Tai_Le Ugaritic Buginese Glagolitic
    Kharoshthi Syloti_Nagri New_Tai_Lue Tifinagh Old_Persian Balinese Batak Brahmi Cham
    Egyptian_Hieroglyphs Javanese Kayah_Li Lepcha Mandaic Nko Old_Turkic Phags_Pa Phoenician Vai
    Cuneiform Unknown Carian Tai_Tham Lycian Lydian Ol_Chiki Rejang Saurashtra Sundanese Meetei_Mayek
    Imperial_Aramaic Avestan Kaithi Inscriptional_Pahlavi Inscriptional_Parthian Samaritan Tai_Viet
    """.split()  # noqa: SIM905
)


def has_unicode_class(name: str) -> bool:
    """Whether RE2/J knows a general category or script of this name."""
    return name in ("Any", "Common") or name in _CATEGORIES or name in _SCRIPTS


def _in_class(name: str, character: str, forms: tuple[str, ...]) -> bool:
    test = _unicode_test(name)
    if name == "Ll" and len(forms) == _TWO_CASES and character.lower().upper() == character:
        return test(character)  # RE2/J's table of other cases of lower case leaves these out
    return any(map(test, forms))


@cache
def _unicode_test(name: str) -> Callable[[str], bool]:
    if name == "Any":
        return lambda character: True
    if name == "C":  # RE2/J leaves out what is not assigned
        return lambda character: unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")
    if name in _CATEGORIES:
        return lambda character: unicodedata.category(character).startswith(name)
    if name == "Common":
        return lambda character: character.isascii() and not character.isalpha()
    prefix = name.upper().replace("_", " ") + " "
    return lambda character: (
        unicodedata.name(character, "").startswith(prefix) and (unicodedata.category(character)[0] in "LMN")
    )

r"""Sets of characters: ranges, the classes of Perl (`\d`), POSIX (`[:alpha:]`) and Unicode (`\pL`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "ANY",
    "NOT_NEWLINE",
    "PERL_CLASSES",
    "POSIX_CLASSES",
    "CharacterPart",
    "CharacterSet",
    "unicode_class",
]

CharacterRanges = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CharacterPart:
    """A part of a set: characters in ranges, or those that a test accepts; or all others, if negated."""

    ranges: CharacterRanges = ()
    test: Callable[[str], bool] | None = None
    negated: bool = False
    fold: bool = False

    def has(self, character: str) -> bool:
        candidates = {character, *character.lower(), *character.upper()} if self.fold else {character}
        found = any(
            any(low <= one <= high for low, high in self.ranges) or (self.test is not None and self.test(one))
            for one in candidates
        )
        return found is not self.negated


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """Characters that one of the parts has; or none of them, if negated."""

    parts: tuple[CharacterPart, ...]
    negated: bool = False

    def has(self, character: str) -> bool:
        return any(part.has(character) for part in self.parts) is not self.negated


ANY = CharacterSet((), negated=True)
NOT_NEWLINE = CharacterSet((CharacterPart((("\n", "\n"),)),), negated=True)

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


def unicode_class(name: str) -> Callable[[str], bool] | None:
    """The test of a general category or a script; None for a name that RE2/J does not know."""
    if name == "Any":
        return lambda character: True
    if name in _CATEGORIES:
        return lambda character: unicodedata.category(character).startswith(name)
    if name == "Common":
        return lambda character: character.isascii() and not character.isalpha()
    if name in _SCRIPTS:
        prefix = name.upper().replace("_", " ") + " "
        return lambda character: (
            unicodedata.name(character, "").startswith(prefix)
            and (unicodedata.category(character)[0] in "LMN")
        )
    return None

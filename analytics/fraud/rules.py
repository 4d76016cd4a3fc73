"""Rules of fraud as data: loads and checks `rules.toml`, or another file of its form. Errors name the line."""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from string import Formatter
from typing import Annotated, Literal, Self
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from shared.errors import OperatorError

LOGIC = 1
"""Version of the code that applies rules. Raise it when the same rules come to mean something else."""
TODAY = files("analytics.fraud") / "rules.toml"

About = Literal["customer", "token"]
Measure = Literal["attempts", "declines", "tokens", "accounts", "times_usual"]
MEASURES: dict[About, frozenset[Measure]] = {
    "customer": frozenset(("attempts", "declines", "tokens", "times_usual")),
    "token": frozenset(("attempts", "declines", "accounts")),
}
REASON_FIELDS = {"at_least", "minutes"}

Score = Annotated[int, Field(ge=0, le=100)]
Positive = Annotated[int, Field(ge=1)]
Words = Annotated[str, Field(min_length=1)]


class BrokenRules(OperatorError):
    """A rules file is invalid. The message is one line: the file, the place in it, and what is wrong there."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Windows(_Table):
    minutes: Positive
    every: Positive

    @model_validator(mode="after")
    def _whole_hops(self) -> Self:
        if self.minutes % self.every:
            raise _wrong(f"every: {self.every} does not divide the {self.minutes} minutes of a window")
        return self


class History(_Table):
    purchases: Positive


class Tokens(_Table):
    shared: tuple[str, ...] = Field(strict=False)


class Payment(_Table):
    hold: Score
    refuse: Score
    hours: Positive
    seconds: Annotated[int, Field(ge=0)]


class Level(_Table):
    at_least: Positive
    score: Score


class Rule(_Table):
    name: Words
    about: About
    measure: Measure
    reason: Words
    levels: tuple[Level, ...] = Field(min_length=1, strict=False)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.measure not in MEASURES[self.about]:
            known = ", ".join(sorted(MEASURES[self.about]))
            raise _wrong(f"measure: {self.measure} is not measured of a {self.about}; there are {known}")
        if not all(a.at_least < b.at_least and a.score < b.score for a, b in pairwise(self.levels)):
            raise _wrong("levels: each has to ask for more than the one before, and to have a higher score")
        _check_reason(self.reason)
        return self

    def reason_at(self, level: Level, windows: Windows) -> str:
        return self.reason.format(at_least=level.at_least, minutes=windows.minutes)


class Rules(_Table):
    windows: Windows
    history: History
    tokens: Tokens
    payment: Payment
    rule: tuple[Rule, ...] = Field(strict=False)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [rule.name for rule in self.rule]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise _wrong(f"two rules are called {twice[0]!r}")
        return self

    @property
    def version(self) -> int:
        """A hash of the rules: it changes whenever they do."""
        return crc32(f"{LOGIC} {self.model_dump_json()}".encode())


def load_rules(file: Traversable = TODAY) -> Rules:
    """Loads a rules file; raises BrokenRules if it is invalid."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BrokenRules(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BrokenRules(f"{file} cannot be read: {error}") from error
    return parse_rules(text, str(file))


def parse_rules(text: str, name: str) -> Rules:
    try:
        return Rules.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BrokenRules(f"{name}: {error}") from error
    except ValidationError as invalid:
        first, *others = invalid.errors()
        more = f" (and {len(others)} more)" if others else ""
        raise BrokenRules(f"{_place(text, name, first)}: {_words(first)}{more}") from invalid


def _check_reason(reason: str) -> None:
    try:
        named = {field for _, field, _, _ in Formatter().parse(reason) if field is not None}
        if unknown := sorted(named - REASON_FIELDS):
            raise _wrong(f"reason: {{{unknown[0]}}} is not known; there are {{at_least}} and {{minutes}}")
        reason.format(at_least=1, minutes=1)
    except ValueError as error:  # PydanticCustomError is one
        raise error if isinstance(error, PydanticCustomError) else _wrong(f"reason: {error}") from error


def _wrong(message: str) -> PydanticCustomError:
    # The message is passed as a value: pydantic would format braces that the user wrote.
    return PydanticCustomError("rules", "{message}", {"message": message})


def _words(error: ErrorDetails) -> str:
    """Names the field and says what is wrong with it."""
    field = ".".join(part for part in error["loc"] if isinstance(part, str) and part != "rule")
    match error["type"]:
        case "rules":
            return error["msg"]
        case "missing":
            return f"{field} is missing"
        case "extra_forbidden":
            return f"{field} is not known here"
        case "too_short":
            return f"{field} has to have at least one"
        case _:
            return f"{field}: {error['msg'][:1].lower()}{error['msg'][1:]}, not {error['input']!r}"


def _place(text: str, name: str, error: ErrorDetails) -> str:
    """Finds the line: `rules.toml:31 ([[rule]] 2)`. If the file is written in another style, names the file alone."""
    loc = error["loc"]
    if not loc:
        return name
    lines = text.splitlines()
    table, number = (str(loc[0]), int(loc[1])) if loc[0] == "rule" and len(loc) > 1 else (str(loc[0]), 0)
    starts = [n for n, line in enumerate(lines) if re.match(rf"\s*\[+\s*{re.escape(table)}\s*\]+", line)]
    if number >= len(starts):
        return name
    line = _field_line(lines, starts[number], [str(part) for part in loc if isinstance(part, str)][1:], error)
    return f"{name}:{line + 1}" + (f" ([[rule]] {number + 1})" if table == "rule" else f" ([{table}])")


def _field_line(lines: Sequence[str], start: int, fields: Sequence[str], error: ErrorDetails) -> int:
    """Finds the line that sets the field; else the head of its table."""
    wanted = fields[0] if fields else str(error["msg"]).partition(":")[0]
    for n in range(start + 1, len(lines)):
        if re.match(r"\s*\[", lines[n]):
            break
        if re.match(rf"\s*{re.escape(wanted)}\s*=", lines[n]):
            return n
    return start

"""Rules of fraud as data: today's rules are valid, and an invalid file is reported with its line."""

from pathlib import Path

import pytest

from analytics.fraud.rules import TODAY, BrokenRules, Level, load_rules, parse_rules

TEXT = TODAY.read_text()


def test_the_installed_rules_are_valid() -> None:
    rules = load_rules()
    assert {rule.about for rule in rules.rule} == {"customer", "token"}
    assert {rule.measure for rule in rules.rule} == {"attempts", "declines", "tokens", "accounts", "times_usual"}
    assert "tok_ok" in rules.tokens.shared


def test_a_reason_names_the_limit_that_was_reached() -> None:
    rules = load_rules()
    [declines] = [rule for rule in rules.rule if rule.name == "declines"]
    reason = declines.reason_at(Level(at_least=4, score=60), rules.windows)
    assert reason == "at least 4 declined payments of one customer within 10 minutes"


LEVELS = "levels = [{ at_least = 4, score = 60 }, { at_least = 8, score = 90 }]"
WRONG = [
    ("minutes = 10", "minutes = = 10", "my.toml: Invalid value (at line 7, column 11)"),
    ("every = 5", "every = 3", "my.toml:8 ([windows]): every: 3 does not divide the 10 minutes of a window"),
    ("every = 5", "", "my.toml:4 ([windows]): windows.every is missing"),
    ("every = 5", "every = 5\nevrey = 1", "my.toml:9 ([windows]): windows.evrey is not known here"),
    ("every = 5", "every = '5'", "my.toml:8 ([windows]): windows.every: input should be a valid integer, not '5'"),
    ("[history]", "[histories]", "my.toml: history is missing (and 1 more)"),
    (
        'measure = "tokens"',
        'measure = "accounts"',
        "my.toml:53 ([[rule]] 3): measure: accounts is not measured of a customer; "
        "there are attempts, declines, times_usual, tokens",
    ),
    (
        "score = 95 }]",
        "score = 140 }]",
        "my.toml:48 ([[rule]] 2): levels.score: input should be less than or equal to 100, not 140",
    ),
    (
        "score = 95 }]",
        "score = 10 }]",
        "my.toml:48 ([[rule]] 2): levels: each has to ask for more than the one before, and to have a higher score",
    ),
    (LEVELS, "levels = []", "my.toml:55 ([[rule]] 3): levels has to have at least one"),
    (
        "{at_least} declined",
        "{value} declined",
        "my.toml:47 ([[rule]] 2): reason: {value} is not known; there are {at_least} and {minutes}",
    ),
    ("{at_least} declined", "{at_least declined", "my.toml:47 ([[rule]] 2): reason: unexpected '{' in field name"),
    ('name = "declines"', 'name = "attempts"', "my.toml: two rules are called 'attempts'"),
    ('name = "declines"', "", "my.toml:43 ([[rule]] 2): name is missing"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_an_error_in_a_rules_file_is_one_line_with_its_place(right: str, wrong: str, message: str) -> None:
    assert right in TEXT
    with pytest.raises(BrokenRules) as broken:
        parse_rules(TEXT.replace(right, wrong, 1), "my.toml")
    assert broken.value.message == message


def test_a_missing_file_and_a_binary_file_are_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(b"\xff\xfe")
    for name, why in (("none", "No such file"), ("rules", "can't decode")):
        with pytest.raises(BrokenRules, match=why):
            load_rules(tmp_path / name)

"""Rules of suspicion as data: what today's say, and what is said about a file that is wrong."""

from pathlib import Path

import pytest

from analytics.fraud.rules import TODAY, BrokenRules, Level, load_rules, parse_rules

TEXT = TODAY.read_text()


def test_todays_rules_are_rules() -> None:
    rules = load_rules()
    assert {rule.about for rule in rules.rule} == {"customer", "token"}
    assert {rule.measure for rule in rules.rule} == {"attempts", "declines", "tokens", "accounts", "times_usual"}
    assert "tok_ok" in rules.tokens.shared


def test_a_reason_is_in_words_with_its_limit() -> None:
    rules = load_rules()
    [declines] = [rule for rule in rules.rule if rule.name == "declines"]
    said = declines.reason_at(Level(at_least=4, score=60), rules.windows)
    assert said == "at least 4 declined payments of one customer within 10 minutes"


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


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_what_is_wrong_is_said_in_one_line_with_its_place(right: str, wrong: str, said: str) -> None:
    assert right in TEXT
    with pytest.raises(BrokenRules) as broken:
        parse_rules(TEXT.replace(right, wrong, 1), "my.toml")
    assert broken.value.message == said


def test_a_file_that_is_not_there_or_not_text_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(b"\xff\xfe")
    for name, why in (("none", "No such file"), ("rules", "can't decode")):
        with pytest.raises(BrokenRules, match=why):
            load_rules(tmp_path / name)

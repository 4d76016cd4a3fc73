"""The database's address without Settings is the one of Settings, whatever the sources say."""

from itertools import product
from pathlib import Path

import pytest

from infra.settings import Settings
from shared.store.address import database_url

GIVEN: list[dict[str, str]] = [
    {},
    {"TILL_POSTGRES_PORT": "1"},
    {"TILL_DATABASE_PASSWORD": "p"},
    {"till_database_password": "lower", "TILL_POSTGRES_PORT": ""},
    {"TILL_DATABASE_URL": "postgresql://there/db"},
    {"TILL_DATABASE_URL": "", "TILL_POSTGRES_PORT": "2"},
]


def test_the_address_is_the_one_that_settings_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILL_HOME", "home")
    (tmp_path / "home").mkdir()
    for home, here, environment in product(GIVEN, GIVEN, GIVEN):
        for file, given in ((tmp_path / "home" / "till.env", home), (tmp_path / ".env", here)):
            file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            assert database_url() == Settings.load().database_url.get_secret_value(), (home, here, environment)

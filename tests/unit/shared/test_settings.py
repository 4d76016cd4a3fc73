"""Settings: where a value comes from, how a wrong one is reported, and that no secret is ever shown."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from infra.cli import till
from infra.cli.commands.shop.settings import MASK, masked
from infra.cli.reference.settings_page import GROUPS, page
from infra.settings import Settings
from shared.errors import OperatorError

ROOT = Path(__file__).parents[3]
VARIABLES = {f"TILL_{name.upper()}" for name in Settings.model_fields}


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith("TILL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def till_settings(*options: str) -> Result:
    return CliRunner().invoke(till, ["settings", *options], catch_exceptions=False)


def listed() -> dict[str, dict[str, object]]:
    return {setting["variable"]: setting for setting in json.loads(till_settings("--json").output)}


def write_till_env(text: str) -> None:
    home = Path(".till")
    home.mkdir()
    (home / "till.env").write_text(text)


def test_without_any_setting_the_addresses_are_the_local_ones() -> None:
    loaded = Settings.load()

    assert loaded.kafka_bootstrap == "127.0.0.1:9092"
    assert loaded.registry_url == "http://127.0.0.1:8081/apis/ccompat/v7"
    assert loaded.database_url.get_secret_value() == "postgresql://till:@127.0.0.1:54320/till"
    assert loaded.home == Path.cwd() / ".till"


def test_local_addresses_follow_ports_brokers_and_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILL_KAFKA_BROKERS", "3")
    monkeypatch.setenv("TILL_KAFKA_PORT", "19000")
    monkeypatch.setenv("TILL_REGISTRY_PORT", "18081")
    monkeypatch.setenv("TILL_POSTGRES_PORT", "15432")
    monkeypatch.setenv("TILL_DATABASE_PASSWORD", "hush")

    loaded = Settings.load()

    assert loaded.kafka_bootstrap == "127.0.0.1:19000,127.0.0.1:19001,127.0.0.1:19002"
    assert loaded.registry_url == "http://127.0.0.1:18081/apis/ccompat/v7"
    assert loaded.database_url.get_secret_value() == "postgresql://till:hush@127.0.0.1:15432/till"


def test_an_address_that_is_set_is_not_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILL_KAFKA_BOOTSTRAP", "broker:9092")
    monkeypatch.setenv("TILL_KAFKA_PORT", "19000")

    assert Settings.load().kafka_bootstrap == "broker:9092"


def test_environment_beats_dotenv_beats_till_env_beats_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Settings.load().shop_port == 8080
    write_till_env("TILL_SHOP_PORT=8001\n")
    assert Settings.load().shop_port == 8001
    Path(".env").write_text("TILL_SHOP_PORT=8002\n")
    assert Settings.load().shop_port == 8002
    monkeypatch.setenv("TILL_SHOP_PORT", "8003")
    assert Settings.load().shop_port == 8003
    assert Settings.load(shop_port=8004).shop_port == 8004


def test_till_home_moves_till_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "till.env").write_text("TILL_KAFKA_BROKERS=3\n")
    monkeypatch.setenv("TILL_HOME", str(elsewhere))

    assert Settings.load().kafka_brokers == 3
    assert Settings.load().home == elsewhere


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TILL_KAFKA_PORT", "ninety"),
        ("TILL_SHOP_PORT", "70000"),
        ("TILL_KAFKA_BROKERS", "2"),
        ("TILL_KAFKA_SECURITY_PROTOCOL", "TLS"),
        ("TILL_DATABASE_POOL_SIZE", "1"),
        ("TILL_SESSION_HOURS", "0"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(OperatorError) as refused:
        Settings.load()

    assert variable in refused.value.message
    assert "till settings" in refused.value.hint


def test_every_wrong_value_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILL_KAFKA_PORT", "0")
    monkeypatch.setenv("TILL_LOG_FORMAT", "xml")

    with pytest.raises(OperatorError, match=r"TILL_KAFKA_PORT.*TILL_LOG_FORMAT"):
        Settings.load()


def test_the_command_tells_where_each_value_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    write_till_env("TILL_KAFKA_BROKERS=3\nTILL_CART_PORT=8001\n")
    Path(".env").write_text("TILL_CART_PORT=8002\nTILL_SHOP_PORT=8002\n")
    monkeypatch.setenv("TILL_SHOP_PORT", "8003")

    found = listed()

    expected = {
        "TILL_KAFKA_BROKERS": "till.env",
        "TILL_CART_PORT": ".env",
        "TILL_SHOP_PORT": "environment",
        "TILL_KAFKA_BOOTSTRAP": "derived",
        "TILL_CATALOG_PORT": "default",
        "TILL_HOME": "default",
    }
    assert {variable: found[variable]["source"] for variable in expected} == expected
    assert found["TILL_SHOP_PORT"]["value"] == 8003
    assert re.search(r"TILL_SHOP_PORT +environment +8003\n", till_settings().output)


def test_the_command_lists_every_setting_once_by_group() -> None:
    found = json.loads(till_settings("--json").output)

    assert sorted(s["variable"] for s in found) == sorted(f"TILL_{name.upper()}" for name in Settings.model_fields)
    assert list(dict.fromkeys(s["group"] for s in found)) == list(GROUPS)
    assert all(s["description"] for s in found)


def test_only_one_output_format_can_be_chosen() -> None:
    assert till_settings("--json", "--markdown").exit_code == 2


def secret_settings() -> list[str]:
    return [name for name, field in Settings.model_fields.items() if field.annotation is SecretStr]


def test_every_setting_with_the_name_of_a_secret_is_typed_as_one() -> None:
    named_so = {name for name in Settings.model_fields if re.search("password|secret|_key$|database_url", name)}
    assert named_so == set(secret_settings())


@pytest.mark.parametrize("name", secret_settings())
def test_no_secret_is_ever_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    secret = "postgresql://till:s3cr3t@db/till" if name.endswith("_url") else "s3cr3t"
    monkeypatch.setenv(f"TILL_{name.upper()}", secret)
    loaded = Settings.load()

    for view in (till_settings().output, till_settings("--json").output, till_settings("--markdown").output):
        assert "s3cr3t" not in view
    for view in (repr(loaded), str(loaded), loaded.model_dump_json(), repr(loaded.model_dump())):
        assert "s3cr3t" not in view
    assert MASK in str(listed()[f"TILL_{name.upper()}"]["value"])


def test_an_invalid_secret_is_not_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILL_DATABASE_PASSWORD", "s3cr3t")
    monkeypatch.setenv("TILL_KAFKA_PORT", "s3cr3t-pasted-into-the-wrong-line")

    with pytest.raises(OperatorError) as refused:
        Settings.load()

    assert "s3cr3t" not in refused.value.message


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (SecretStr(""), ""),
        (SecretStr("hush"), MASK),
        (SecretStr("postgresql://till:hush@db:5432/till"), f"postgresql://till:{MASK}@db:5432/till"),
        (SecretStr("postgresql://till:hu#sh@db/till"), f"postgresql://till:{MASK}@db/till"),
        (SecretStr("postgresql://till:hu/sh@db/till"), MASK),
        (SecretStr("postgresql://till:hu@sh@db/till"), MASK),
        (SecretStr("postgresql://db/till?user=till&password=hush"), MASK),
        (SecretStr("postgresql://till:hush@db/till?password=hush"), MASK),
        ("https://ann:hush@registry.example", f"https://ann:{MASK}@registry.example"),
        ("https://token@registry.example", MASK),
        ("http://127.0.0.1:8081/apis/ccompat/v7", "http://127.0.0.1:8081/apis/ccompat/v7"),
        ("ann@example.com", "ann@example.com"),
        (8080, 8080),
        (None, None),
    ],
)
def test_a_value_is_shown_with_its_secret_parts_masked(value: object, shown: object) -> None:
    assert masked(value) == shown


def test_the_page_in_docs_is_up_to_date() -> None:
    assert (ROOT / "docs/settings.md").read_text() == page(), "run: make docs"


def test_the_page_does_not_depend_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    written = page()
    monkeypatch.setenv("HOME", "/somewhere/else")
    monkeypatch.setenv("TILL_HOME", "/somewhere/else/.till")
    monkeypatch.setenv("TILL_SHOP_PORT", "1234")

    assert page() == written
    assert str(Path.cwd()) not in written


def snippets() -> dict[str, str]:
    return dict(re.findall(r"### ([^\n]+)\n[^#]*?```sh\n(.*?)```", page(), re.DOTALL))


@pytest.mark.parametrize(
    ("service", "mechanism", "username", "port"),
    [
        ("Confluent Cloud", "PLAIN", "API_KEY", 9092),
        ("Amazon MSK", "SCRAM-SHA-512", "USER", 9096),
        ("Azure Event Hubs", "PLAIN", "$ConnectionString", 9093),
    ],
)
def test_the_documented_settings_of_a_managed_kafka_are_valid(
    service: str, mechanism: str, username: str, port: int
) -> None:
    Path(".env").write_text(snippets()[service])

    loaded = Settings.load()

    assert loaded.kafka_security_protocol == "SASL_SSL"
    assert loaded.kafka_sasl_mechanism == mechanism
    assert loaded.kafka_sasl_username == username
    assert loaded.kafka_sasl_password.get_secret_value()
    assert all(address.endswith(f":{port}") for address in loaded.kafka_bootstrap.split(","))
    names = set(re.findall(r"^(TILL_\w+)=", snippets()[service], re.MULTILINE))
    assert names <= VARIABLES


def test_a_connection_string_survives_dotenv_unchanged() -> None:
    Path(".env").write_text(snippets()["Azure Event Hubs"])

    password = Settings.load().kafka_sasl_password.get_secret_value()

    assert password.startswith("Endpoint=sb://")
    assert password.endswith(";SharedAccessKey=KEY")

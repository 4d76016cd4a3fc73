"""The services in the table of services/README.md have the same file names: who knows one finds the way in all."""

import re
from pathlib import Path

SERVICES = Path(__file__).parents[3] / "services"
README = (SERVICES / "README.md").read_text()
NOT_NEEDED = {
    "cart": {"reactions.py", "queries.py"},  # it reacts to nothing, and reads its table through products.py
    "payment": {"views.py", "queries.py"},  # it has no table
}


def siblings() -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE))


def promised() -> set[str]:
    _, _, rest = " ".join(README.split()).partition("The four have the same file names:")
    listed, _, _ = rest.partition("A service that needs no such file")
    return set(re.findall(r"`(\w+\.py)`", listed))


def test_the_readme_names_the_services_and_their_files() -> None:
    assert siblings() == {"cart", "catalog", "order", "payment"}
    assert {"commands.py", "events.py", "decider.py", "reactions.py", "api.py", "bodies.py", "views.py"} < promised()


def test_every_service_has_the_files_that_the_readme_promises() -> None:
    missing = {name: {file for file in promised() if not (SERVICES / name / file).exists()} for name in siblings()}
    assert {name: files for name, files in missing.items() if files} == NOT_NEEDED

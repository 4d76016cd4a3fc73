"""The address of the database, found as Settings finds it, in a tenth of the time that Settings takes to import.

For commands that answer at once. Who needs more than this address loads Settings.
"""

import os
from pathlib import Path

from dotenv import dotenv_values

PREFIX = "TILL_"
HOST, PORT = "127.0.0.1", "54320"


def database_url() -> str:
    """A test holds it against Settings."""
    home = Path(os.environ.get(f"{PREFIX}HOME", ".till")).absolute()
    given: dict[str, str] = {}
    for source in (dotenv_values(home / "till.env"), dotenv_values(".env"), os.environ):  # the strongest last
        given |= {name.upper(): value for name, value in source.items() if value}
    if url := given.get(f"{PREFIX}DATABASE_URL"):
        return url
    password, port = given.get(f"{PREFIX}DATABASE_PASSWORD", ""), given.get(f"{PREFIX}POSTGRES_PORT", PORT)
    return f"postgresql://till:{password}@{HOST}:{port}/till"

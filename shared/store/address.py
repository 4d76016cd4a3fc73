"""The address of the database without Settings, for commands that have to answer at once, such as `till state`.

Importing and loading Settings (pydantic-settings) takes about 0.3 s of CPU, this takes 0.07 s; the whole of
`till state` has a budget of 0.3 s (`till bench replay` measures it). A test compares the two for every combination of
sources. Code that needs more than this address loads Settings.
"""

import os
from pathlib import Path

from dotenv import dotenv_values

PREFIX = "TILL_"
HOST, PORT = "127.0.0.1", "54320"


def database_url() -> str:
    home = Path(os.environ.get(f"{PREFIX}HOME", ".till")).absolute()
    given: dict[str, str] = {}
    for source in (dotenv_values(home / "till.env"), dotenv_values(".env"), os.environ):  # in ascending precedence
        given |= {name.upper(): value for name, value in source.items() if value}
    if url := given.get(f"{PREFIX}DATABASE_URL"):
        return url
    password, port = given.get(f"{PREFIX}DATABASE_PASSWORD", ""), given.get(f"{PREFIX}POSTGRES_PORT", PORT)
    return f"postgresql://till:{password}@{HOST}:{port}/till"

"""Reads the schema files, `schemas/<folder>/<Record>.v<N>.avsc`, checks each one and inlines the shared types."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from itertools import count
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from shared.errors import OperatorError

FILE_NAME = re.compile(r"([A-Za-z]\w*)\.v([1-9]\d*)\.avsc")
SHARED_TYPES = "shared"
NESTING = ("type", "items", "values", "fields")


@dataclass(frozen=True)
class SchemaFile:
    """One version of one record, as its file defines it."""

    folder: str
    name: str
    version: int
    definition: dict[str, Any]

    def __str__(self) -> str:
        return f"schemas/{self.folder}/{self.name}.v{self.version}.avsc"

    @property
    def namespace(self) -> str:
        return str(self.definition["namespace"])

    @property
    def record(self) -> str:
        return f"{self.namespace}.{self.name}"


def read_files(root: Traversable) -> list[SchemaFile]:
    """Reads every schema file below `root`, sorted by folder and record, oldest version first."""
    found = [
        _read(folder.name, file)
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".avsc")
    ]
    found.sort(key=lambda file: (file.folder, file.name, file.version))
    _require_each_version_once(found)
    return found


def topic_namespaces(root: Traversable) -> dict[str, str]:
    """Maps each Avro namespace to the topic that carries it, as `topics.toml` declares."""
    declared = tomllib.loads((root / "topics.toml").read_text())["topics"]
    return {topic["namespace"]: name for name, topic in declared.items() if "namespace" in topic}


def self_contained(files: Sequence[SchemaFile]) -> Iterator[tuple[SchemaFile, dict[str, Any]]]:
    """Yields each event's file with a definition that needs no other file: the shared types are inlined."""
    shared_types = {f"{file.record}.v{file.version}": file for file in files if file.folder == SHARED_TYPES}
    for file in files:
        definition = _SharedTypeInliner(file, shared_types).definition()
        if file.folder != SHARED_TYPES:
            yield file, definition


def _read(folder: str, file: Traversable) -> SchemaFile:
    path = f"schemas/{folder}/{file.name}"
    named = FILE_NAME.fullmatch(file.name)
    if named is None:
        raise OperatorError(
            f"{path} is not named like a schema file.", "Name it <Record>.v<N>.avsc, for example ItemAdded.v2.avsc."
        )
    try:
        definition = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OperatorError(f"{path} is not JSON: {error}.", "Correct the file.") from error
    if not isinstance(definition, dict) or definition.get("type") != "record" or not definition.get("namespace"):
        raise OperatorError(
            f"{path} is not an Avro record with a namespace.",
            "Every schema file holds one record; see the other files in the folder.",
        )
    if definition.get("name") != named[1]:
        raise OperatorError(
            f"{path} defines {definition.get('name')}, not {named[1]}.",
            "A file is named after its record. An event keeps its name forever; another name is another event.",
        )
    return SchemaFile(folder, named[1], int(named[2]), definition)


def _require_each_version_once(files: list[SchemaFile]) -> None:
    records: dict[str, list[SchemaFile]] = {}
    for file in files:
        records.setdefault(file.record, []).append(file)
    for versions in records.values():
        for expected, file in zip(count(1), sorted(versions, key=lambda f: f.version)):
            if file.version < expected:
                twins = " and ".join(str(twin) for twin in versions if twin.version == file.version)
                raise OperatorError(
                    f"Version {file.version} of {file.record} exists twice: {twins}.",
                    "A version number is used once. Take the next free one.",
                )
            if file.version > expected:
                raise OperatorError(
                    f"Version {expected} of {file.record} is missing, but {file} exists.",
                    "Versions are never skipped or deleted: events written with them must stay readable.",
                )


class _SharedTypeInliner:
    """Inlines each shared type at its first use; later uses keep the name, as Avro requires.

    `tillroll.Line` is version 1 of a shared type and `tillroll.Line.v2` a later one, so a released event does not
    change when a shared type gets a new version.
    """

    def __init__(self, file: SchemaFile, shared_types: Mapping[str, SchemaFile]) -> None:
        self._file = file
        self._shared_types = shared_types
        self._written: dict[str, int] = {}

    def definition(self) -> dict[str, Any]:
        definition: dict[str, Any] = self._expand(self._file.definition)
        try:
            parse_schema(json.loads(json.dumps(definition)))
        except UnknownType as error:
            available = ", ".join(self._shared_types)
            raise OperatorError(
                f"{self._file} names a type that does not exist: {error}.",
                f"Correct the name, or add the type to schemas/{SHARED_TYPES}, which has: {available or 'none'}.",
            ) from error
        except (SchemaParseException, KeyError, TypeError, AttributeError) as error:
            raise OperatorError(f"{self._file} is not valid Avro: {error}.", "Correct the file.") from error
        return definition

    def _expand(self, node: Any) -> Any:
        match node:
            case str():
                return self._named(node)
            case dict():
                return {key: self._expand(value) if key in NESTING else value for key, value in node.items()}
            case list():
                return [self._expand(item) for item in node]
            case _:
                return node

    def _named(self, name: str) -> Any:
        wanted = self._shared_types.get(name) or self._shared_types.get(f"{name}.v1")
        if wanted is None:
            return name
        written = self._written.get(wanted.record)
        if written is None:
            self._written[wanted.record] = wanted.version
            return self._expand(wanted.definition)
        if written != wanted.version:
            raise OperatorError(
                f"{self._file} names two versions of {wanted.record}: {written} and {wanted.version}.",
                "Within one schema a name has one meaning. Name the same version everywhere.",
            )
        return wanted.record

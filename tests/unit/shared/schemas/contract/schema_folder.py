"""Makes a `schemas/` folder for a test: record files, and two topics."""

import json
from pathlib import Path
from typing import Any

TOPICS = """
[topics."paper.events"]
namespace = "tests.paper"
[topics."glue.events"]
namespace = "tests.glue"
"""
DOC = "What it means."

SKU = {"name": "sku", "type": "string", "doc": DOC}
AT = {"name": "at", "type": "long", "doc": DOC}
NOTE = {"name": "note", "type": "string", "default": "", "doc": DOC}


def record(name: str, *fields: dict[str, Any], namespace: str = "tests.paper") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": namespace, "doc": DOC, "fields": list(fields)}


def folder(root: Path, files: dict[str, Any]) -> Path:
    """Writes the files by path, such as `paper/Cut.v1`: a definition, or raw text for a file that is not JSON."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "topics.toml").write_text(TOPICS)
    (root / "shared").mkdir(exist_ok=True)
    for path, content in files.items():
        file = root / f"{path}.avsc"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    return root

"""Runs the notebook of the documentation, in the environment that the test has set."""

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[4] / "docs" / "lake.ipynb"


def assert_the_notebook_runs() -> None:
    """Fails if a cell fails, if the lake's tables are not listed, or if the plot is not drawn."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(NOTEBOOK.parents[1]))
    outputs: list[Any] = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "the plot is drawn"
    assert "gold.orders" in outputs[0]["data"]["text/plain"]

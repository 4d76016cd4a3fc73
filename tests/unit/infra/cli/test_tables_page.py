"""The page on the lake's tables says what the catalog says."""

from pathlib import Path

from analytics.catalog import all_tables
from infra.cli.reference.tables_page import page


def test_the_page_on_tables_is_up_to_date() -> None:
    written = (Path(__file__).parents[4] / "docs" / "tables.md").read_text()
    assert written == page(), "Run: make docs"


def test_every_table_and_every_column_has_a_description() -> None:
    for table in all_tables():
        assert table.description.endswith("."), table.name
        for column in table.columns:
            assert column.description, f"{table.name}.{column.name}"

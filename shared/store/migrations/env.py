"""Alembic's entry: runs on the connection that `migrate` opened, inside its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table_schema=context.config.attributes["schema"],
    target_metadata=context.config.attributes.get("metadata"),
)
context.run_migrations()

"""Alembic scripts of the kernel's own tables; `shared/store/migrate.py` runs them."""

"""`till`, the command line."""

from infra.cli.root import main, till

__all__ = ["main", "till"]

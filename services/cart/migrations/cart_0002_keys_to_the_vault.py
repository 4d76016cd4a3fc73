"""Moves the customers' keys into the vault, where the order service reads them too."""

from alembic import op

revision = "cart_0002"
down_revision = "cart_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Lock out the previous release: better that it fails than that it writes keys nobody will read.
    op.execute("LOCK TABLE customer_keys IN ACCESS EXCLUSIVE MODE")
    op.execute("INSERT INTO vault.customer_keys SELECT customer_id, wrapped_key FROM customer_keys")
    op.drop_table("customer_keys")

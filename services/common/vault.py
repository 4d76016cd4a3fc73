"""Encrypts personal data with a key per customer before it enters an event, so that a person can be erased.

This is envelope encryption: a master key wraps each customer's key, and that key seals the data. Deleting the
customer's key is crypto-shredding: every copy of the data, in PostgreSQL, Kafka, dead letters and the lake, turns into
noise at once, while the events themselves stay as they are. The keys are in a PostgreSQL schema of their own, `vault`,
which the services share: the cart seals, the order unseals.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Column, LargeBinary, MetaData, Text
from sqlmodel import Field, SQLModel

from shared.errors import OperatorError
from shared.settings import Settings
from shared.store.database import Pool, SharedSchema

NONCE, KEY = 12, 32
KEYS = MetaData()
VAULT = SharedSchema("vault", Path(__file__).with_name("migrations"))


class CustomerKey(SQLModel, table=True):
    __tablename__ = "customer_keys"
    metadata = KEYS

    customer_id: str = Field(sa_column=Column(Text, primary_key=True))
    wrapped_key: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Vault:
    """Seals and unseals personal data. Keys are read from the table for each use: no cache outlives an erasure."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        try:
            master = base64.urlsafe_b64decode(settings.master_key.get_secret_value())
            if len(master) != KEY:
                raise ValueError(f"{len(master)} bytes")
        except ValueError as error:
            raise OperatorError(
                "TILL_MASTER_KEY is missing or is not 32 bytes in base64.",
                "`till up` generates one; elsewhere set it, for example with: openssl rand -base64 32",
            ) from error
        self._master = AESGCM(master)

    async def seal(self, customer_id: str, personal: Mapping[str, str]) -> str:
        key = await self._key_for(customer_id)
        return base64.urlsafe_b64encode(_encrypt(AESGCM(key), orjson.dumps(personal), customer_id)).decode()

    async def unseal(self, customer_id: str, sealed: str) -> dict[str, str] | None:
        """Returns the personal data, or None once the person has been erased."""
        key = await self._key(customer_id)
        if key is None:
            return None
        try:
            personal = _decrypt(AESGCM(key), base64.urlsafe_b64decode(sealed), customer_id)
        except InvalidTag:
            return None  # sealed with a key that has been erased since
        return dict(orjson.loads(personal))

    async def _key(self, customer_id: str) -> bytes | None:
        wrapped = await self._pool.fetchval(
            "SELECT wrapped_key FROM vault.customer_keys WHERE customer_id = $1", customer_id
        )
        if wrapped is None:
            return None
        try:
            return _decrypt(self._master, wrapped, customer_id)
        except InvalidTag as error:
            raise OperatorError(
                "TILL_MASTER_KEY is not the key that this customer's key was wrapped with.",
                "Set it to the value it had then. `till up` keeps the one it generated in till.env of its home.",
            ) from error

    async def _key_for(self, customer_id: str) -> bytes:
        """Returns the customer's key, creating it if needed. Concurrent callers get the same one."""
        while (key := await self._key(customer_id)) is None:
            await self._pool.execute(
                "INSERT INTO vault.customer_keys (customer_id, wrapped_key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                customer_id,
                _encrypt(self._master, AESGCM.generate_key(8 * KEY), customer_id),
            )
        return key


async def erase(pool: Pool, customer_id: str) -> bool:
    """Deletes the customer's key (crypto-shredding) and tells whether there was one. Needs no master key.

    `pool` belongs to the service that took the personal data: its stored answers are cleaned as well.
    """
    async with pool.acquire() as connection, connection.transaction():
        deleted = await connection.execute("DELETE FROM vault.customer_keys WHERE customer_id = $1", customer_id)
        # A stored digest of a request with name and address in it would let someone confirm a guess.
        await connection.execute("UPDATE answers SET request = '' WHERE actor = $1", customer_id)
    return deleted == "DELETE 1"


def _encrypt(cipher: AESGCM, data: bytes, bound_to: str) -> bytes:
    nonce = os.urandom(NONCE)
    return nonce + cipher.encrypt(nonce, data, bound_to.encode())


def _decrypt(cipher: AESGCM, data: bytes, bound_to: str) -> bytes:
    return cipher.decrypt(data[:NONCE], data[NONCE:], bound_to.encode())

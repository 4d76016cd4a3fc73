"""Personal data, sealed under a key of the customer before it enters an event. Without the key it is noise.

The keys are in a PostgreSQL schema of their own, `vault`, which services share: the one seals, others show.
"""

import base64
import os
from collections.abc import Mapping

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Column, LargeBinary, MetaData, Text
from sqlmodel import Field, SQLModel

from shared.database import Pool
from shared.errors import OperatorError
from shared.settings import Settings

NONCE, KEY = 12, 32
KEYS = MetaData()


class CustomerKey(SQLModel, table=True):
    __tablename__ = "customer_keys"
    metadata = KEYS

    customer_id: str = Field(sa_column=Column(Text, primary_key=True))
    wrapped_key: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Vault:
    """Each key is wrapped by the master key, and read anew for each use: none outlives its erasure in some memory."""

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
        """None once the person has been erased."""
        key = await self._key(customer_id)
        if key is None:
            return None
        try:
            personal = _decrypt(AESGCM(key), base64.urlsafe_b64decode(sealed), customer_id)
        except InvalidTag:
            return None  # sealed under a key that was erased since
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
                "Set it as it was then. A home's own is in its till.env.",
            ) from error

    async def _key_for(self, customer_id: str) -> bytes:
        """Theirs, or a new one. Of two who make one at once, one wins, and both use it."""
        while (key := await self._key(customer_id)) is None:
            await self._pool.execute(
                "INSERT INTO vault.customer_keys (customer_id, wrapped_key) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                customer_id,
                _encrypt(self._master, AESGCM.generate_key(8 * KEY), customer_id),
            )
        return key


async def erase(pool: Pool, customer_id: str) -> bool:
    """Delete the customer's key, and with it the person; whether there was one. Needs no master key.

    The pool is that of the service that they gave their data to.
    """
    async with pool.acquire() as connection, connection.transaction():
        deleted = await connection.execute("DELETE FROM vault.customer_keys WHERE customer_id = $1", customer_id)
        # By the digest of a request that had name and address in it, a guess of them could be confirmed.
        await connection.execute("UPDATE answers SET request = '' WHERE actor = $1", customer_id)
    return deleted == "DELETE 1"


def _encrypt(cipher: AESGCM, data: bytes, bound_to: str) -> bytes:
    nonce = os.urandom(NONCE)
    return nonce + cipher.encrypt(nonce, data, bound_to.encode())


def _decrypt(cipher: AESGCM, data: bytes, bound_to: str) -> bytes:
    return cipher.decrypt(data[:NONCE], data[NONCE:], bound_to.encode())

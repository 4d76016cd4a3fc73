"""JSON shapes that more than one service speaks."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

Sku = Annotated[str, Path(max_length=60, pattern=r"^[\x21-\x7e]+$", examples=["MUG-350"])]


class Price(BaseModel):
    amount: Annotated[int, Field(description="Minor units: cents of a euro.", examples=[1290])]
    currency: Annotated[str, Field(description="ISO 4217.", examples=["EUR"])]

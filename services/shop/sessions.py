"""Guests: whoever asks becomes a customer, with a token to prove it."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from uuid_utils import uuid7

from shared.http.examples import CUSTOMER_ID, like
from shared.settings import Settings


class Session(BaseModel):
    model_config = like({"customer_id": CUSTOMER_ID, "token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"})

    customer_id: str
    token: str


def router(settings: Settings) -> APIRouter:
    routes = APIRouter(tags=["sessions"])

    @routes.post("/v1/sessions", status_code=201, summary="Come in as a guest")
    async def start(request: Request) -> Session:
        customer_id = str(uuid7())
        token = request.app.state.tokens.mint(customer_id, ["customer"], settings.session_hours * 3600)
        return Session(customer_id=customer_id, token=token)

    return routes

"""Makes guests customers: anyone who asks gets a customer id and a token that proves it."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from uuid_utils import uuid7

from services.common.examples import CUSTOMER_ID, response_body
from services.shop.settings import ShopSettings


class Session(BaseModel):
    model_config = response_body({"customer_id": CUSTOMER_ID, "token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"})

    customer_id: str
    token: str


def router(settings: ShopSettings) -> APIRouter:
    routes = APIRouter(tags=["sessions"])

    @routes.post("/v1/sessions", status_code=201, summary="Start a session as a guest")
    async def start(request: Request) -> Session:
        customer_id = str(uuid7())
        token = request.app.state.tokens.mint(customer_id, ["customer"], settings.session_hours * 3600)
        return Session(customer_id=customer_id, token=token)

    return routes

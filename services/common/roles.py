"""The roles that a token of the shop can carry, what they may see, and the route dependencies that require them."""

from typing import Annotated, Literal, get_args

from fastapi import Depends

from shared.http.auth import Principal
from shared.http.calls import Authenticate, Call

Role = Literal["customer", "support", "operator", "analyst"]
ROLES: tuple[Role, ...] = get_args(Role)

Support = Annotated[Call, Depends(Authenticate("support"))]
Operator = Annotated[Call, Depends(Authenticate("operator"))]


def is_support(principal: Principal) -> bool:
    return "support" in principal.roles


def may_see(principal: Principal, customer_id: str) -> bool:
    """Tells whether the caller may see what belongs to this customer: the customer and support may."""
    return customer_id == principal.subject or is_support(principal)

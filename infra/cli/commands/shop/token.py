"""`till token`: prints a bearer token for the local shop."""

import click

from infra.cli.render.console import json_option, print_json
from infra.settings import Settings
from services.common.roles import ROLES, Role
from shared.http.auth import Tokens


@click.command()
@click.option(
    "--role",
    "roles",
    type=click.Choice(ROLES),
    multiple=True,
    default=["customer"],
    show_default=True,
    help="What the token allows. Repeatable.",
)
@click.option("--subject", default="cli", show_default=True, help="Whose token it is: a customer id, or a name.")
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), default=12, show_default=True, help="How long it is valid."
)
@json_option
def token(roles: tuple[Role, ...], subject: str, hours: float, as_json: bool) -> None:
    """Print a bearer token, signed with the local secret.

    \b
    Example:
      curl -H "Authorization: Bearer $(till token --role operator)" ...
    """
    minted = Tokens(Settings.load()).mint(subject, list(roles), hours * 3600)
    if as_json:
        print_json({"token": minted, "subject": subject, "roles": roles})
    else:
        click.echo(minted)

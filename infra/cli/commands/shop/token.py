"""`till token`: a bearer token for the local shop."""

import click

from infra.cli.console import as_json as json_option
from infra.cli.console import print_json
from shared.http.auth import ROLES, Role, Tokens
from shared.settings import Settings


@click.command()
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, default=["customer"], show_default=True)
@click.option("--subject", default="cli", show_default=True, help="Whose token: a customer id, or a name.")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), default=12, show_default=True)
@json_option
def token(roles: tuple[Role, ...], subject: str, hours: float, as_json: bool) -> None:
    """Mint a token, signed with the local secret.

    \b
    Example:
      curl -H "Authorization: Bearer $(till token --role operator)" ...
    """
    minted = Tokens(Settings.load()).mint(subject, list(roles), hours * 3600)
    if as_json:
        print_json({"token": minted, "subject": subject, "roles": roles})
    else:
        click.echo(minted)

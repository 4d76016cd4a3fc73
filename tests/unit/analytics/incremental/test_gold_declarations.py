"""Gold tables are declared by a function: its name, its docstring and its parameters."""

import pytest
from pyspark.sql import DataFrame

from analytics.incremental.definition import tally
from analytics.incremental.scope import in_order
from analytics.models.intermediate.cart_histories import cart_histories
from analytics.models.intermediate.order_processes import order_processes
from analytics.models.scopes.shopping import SHOPPING


def test_an_input_that_does_not_exist_is_refused_with_those_that_do() -> None:
    def refunds(order_proceses: DataFrame) -> DataFrame:
        """Refunds."""
        return order_proceses

    with pytest.raises(TypeError, match="refunds asks for order_proceses; its scope has cart_histories, cart_moves"):
        tally(key="day", figures=("refunds",), scope=SHOPPING)(refunds)


def test_a_table_without_a_description_is_refused() -> None:
    def refunds(order_processes: DataFrame) -> DataFrame:
        return order_processes

    with pytest.raises(TypeError, match="refunds needs a docstring"):
        tally(key="day", figures=("refunds",), scope=SHOPPING)(refunds)


def test_models_run_after_those_whose_names_they_ask_for() -> None:
    assert in_order([order_processes, cart_histories]) == [cart_histories, order_processes]

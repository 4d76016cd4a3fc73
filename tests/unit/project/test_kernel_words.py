"""The kernel has no word of the shop in its code. Docstrings and comments may borrow an example, such as a cart."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHOP_WORDS = {
    *("cart", "carts", "customer", "customers", "shop", "shops", "shopper", "shoppers"),
    *("product", "products", "sku", "stock", "price", "money", "currency"),
    *("payment", "payments", "refund", "card", "cards", "vault", "psp", "recipient", "shipping"),
}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def texts(tree: ast.Module) -> Iterator[str]:
    """Yields the names and the strings of a module, without its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def shop_words(source: str) -> set[str]:
    found = {word.lower() for text in texts(ast.parse(source)) for word in WORD.findall(text)}
    return found & SHOP_WORDS


def test_the_kernel_has_no_word_of_the_shop() -> None:
    found = {str(file.relative_to(ROOT)): shop_words(file.read_text()) for file in (ROOT / "shared").rglob("*.py")}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "source",
    ["cart_port = 1", "class CartView: ...", "def seal(customerId): ...", 'TOPIC = "stock.events"', "it.vault"],
)
def test_a_word_of_the_shop_is_found(source: str) -> None:
    assert shop_words(source) != set()


@pytest.mark.parametrize(
    "source", ['"""Abandons a cart."""', "x = 1  # as in a cart", "discard(cartography)", '"ORDER BY position"']
)
def test_an_example_in_a_docstring_and_other_words_are_accepted(source: str) -> None:
    assert shop_words(source) == set()

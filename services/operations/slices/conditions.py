"""Parses the conditions of `till replay --where`, such as

    type == 'ItemAdded' and data.sku == 'KIT-1001'
    data.total.amount >= 5000 or 'KIT-1001' in data.lines.sku

A condition is written in Python's syntax, so that Python's own parser reads it. It is never evaluated as Python: its
syntax tree is turned into functions that can do nothing but look up fields of a message and compare them. No library
that is installed anyway does that: jq and SQL engines would need every message converted for them.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
MAX_LENGTH, MAX_DEPTH = 2_000, 50

Fields = Mapping[str, Any]
Condition = Callable[[Fields], bool]
Value = Callable[[Fields], Any]


class BadCondition(ValueError):
    """Says what is wrong with a condition, and where."""


def parse_condition(text: str, names: frozenset[str]) -> Condition:
    """Returns a function that tells whether the condition holds for a message with fields of these names.

    A field that a message does not have is None, and so are the fields of such a field.
    """
    if len(text) > MAX_LENGTH:
        raise BadCondition(f"It is longer than {MAX_LENGTH} characters.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise BadCondition(f"It cannot be read{at}: {reason}.") from None
    value = _Compiler(names).compile(tree.body, 0)
    return lambda fields: bool(value(fields))


class _Compiler:
    """Turns a syntax tree into a function from the fields of a message to a value."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def compile(self, node: ast.expr, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise BadCondition("It is nested too deeply.")
        match node:
            case ast.Constant(value=str() | int() | float() | bool() | None as constant):
                return lambda _: constant
            case ast.Name(id=name):
                return self._field_of_message(name)
            case ast.Attribute(value=inner, attr=name):
                owner = self.compile(inner, depth + 1)
                return lambda fields: _field(owner(fields), name)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as key)):
                owner = self.compile(inner, depth + 1)
                return lambda fields: _item(owner(fields), key)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                values = [self.compile(item, depth + 1) for item in items]
                return lambda fields: [value(fields) for value in values]
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                negated = self.compile(inner, depth + 1)
                return lambda fields: not negated(fields)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return lambda _: -number
            case ast.BoolOp(op=op, values=parts):
                values = [self.compile(part, depth + 1) for part in parts]
                combine = all if isinstance(op, ast.And) else any
                return lambda fields: combine(value(fields) for value in values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison(ops, [left, *others], depth)
        text = ast.unparse(node)
        raise BadCondition(f"{text!r} is not supported: a condition compares fields, texts and numbers.")

    def _field_of_message(self, name: str) -> Value:
        if name not in self._names:
            raise BadCondition(f"There is no field {name!r}. There are: {', '.join(sorted(self._names))}.")
        return lambda fields: fields.get(name)

    def _comparison(self, ops: list[ast.cmpop], operands: list[ast.expr], depth: int) -> Value:
        if any(type(op) not in COMPARISONS for op in ops):
            raise BadCondition("'is' is not supported: write == instead.")
        values = [self.compile(operand, depth + 1) for operand in operands]
        comparisons = [COMPARISONS[type(op)] for op in ops]

        def compare(fields: Fields) -> bool:
            sides = [value(fields) for value in values]
            return all(_holds(it, a, b) for it, a, b in zip(comparisons, sides, sides[1:], strict=False))

        return compare


def _holds(comparison: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    try:
        return comparison(left, right)
    except TypeError:  # a field may be a number in some messages, and missing or a text in others
        return False


def _field(owner: Any, name: str) -> Any:
    """Returns a field of a record; for a list, that field of each of its items."""
    if isinstance(owner, list):
        return [_field(item, name) for item in owner]
    return owner.get(name) if isinstance(owner, Mapping) else None


def _item(owner: Any, key: str | int) -> Any:
    try:
        return owner[key]
    except (KeyError, IndexError, TypeError):
        return None

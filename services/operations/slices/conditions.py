"""What `--where` understands: comparisons of a message's fields, parsed as Python and walked by hand, never run.

type == 'ItemAdded' and data.sku == 'KIT-1001'
data.total.amount >= 5000 or 'KIT-1001' in data.lines.sku
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
    ast.In: lambda it, many: it in many,
    ast.NotIn: lambda it, many: it not in many,
}
LONGEST, DEEPEST = 2_000, 50

Fields = Mapping[str, Any]
Where = Callable[[Fields], bool]
Value = Callable[[Fields], Any]


class BadExpression(ValueError):
    """Says what is wrong with it, and where."""


def where(text: str, names: frozenset[str]) -> Where:
    """A condition over fields of these names. A field that a message has not got is None, and so are its fields."""
    if len(text) > LONGEST:
        raise BadExpression(f"It is longer than {LONGEST} characters.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise BadExpression(f"It cannot be read{at}: {reason}.") from None
    value = _Walk(names).value(tree.body, 0)
    return lambda fields: bool(value(fields))


class _Walk:
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def value(self, node: ast.expr, depth: int) -> Value:
        if depth > DEEPEST:
            raise BadExpression("It is nested too deeply.")
        match node:
            case ast.Constant(value=str() | int() | float() | bool() | None as constant):
                return lambda _: constant
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=inner, attr=name):
                of = self.value(inner, depth + 1)
                return lambda fields: _field(of(fields), name)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as key)):
                of = self.value(inner, depth + 1)
                return lambda fields: _item(of(fields), key)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                values = [self.value(item, depth + 1) for item in items]
                return lambda fields: [value(fields) for value in values]
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                negated = self.value(inner, depth + 1)
                return lambda fields: not negated(fields)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return lambda _: -number
            case ast.BoolOp(op=op, values=parts):
                values = [self.value(part, depth + 1) for part in parts]
                decide = all if isinstance(op, ast.And) else any
                return lambda fields: decide(value(fields) for value in values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison(left, ops, others, depth)
        said = ast.unparse(node)
        raise BadExpression(f"{said!r} is not understood here: fields, texts, numbers, and comparisons of them are.")

    def _name(self, name: str) -> Value:
        if name not in self._names:
            raise BadExpression(f"There is no field {name!r}. There are: {', '.join(sorted(self._names))}.")
        return lambda fields: fields.get(name)

    def _comparison(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr], depth: int) -> Value:
        unknown = next((op for op in ops if type(op) not in COMPARISONS), None)
        if unknown:
            raise BadExpression("'is' is not understood here: == is.")
        values = [self.value(side, depth + 1) for side in (left, *others)]
        compare = [COMPARISONS[type(op)] for op in ops]

        def compared(fields: Fields) -> bool:
            sides = [value(fields) for value in values]
            return all(_holds(how, a, b) for how, a, b in zip(compare, sides, sides[1:], strict=False))

        return compared


def _holds(how: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    try:
        return how(left, right)
    except TypeError:  # a field of some messages is a number where it is nothing, or a text, in others
        return False


def _field(of: Any, name: str) -> Any:
    """Of a list: that field of each of its items."""
    if isinstance(of, list):
        return [_field(item, name) for item in of]
    return of.get(name) if isinstance(of, Mapping) else None


def _item(of: Any, key: str | int) -> Any:
    try:
        return of[key]
    except (KeyError, IndexError, TypeError):
        return None

"""I5, I9: what is folded of the events of one service, views and pieces, is what it should be."""

from collections import defaultdict

from services.replay.checks.findings import Findings, World
from services.replay.checks.reading import Fold, read
from services.replay.checks.stock import shelves
from services.replay.checks.views import views


async def check(world: World, service: str) -> list[Findings]:
    alike: dict[int, list[Fold]] = defaultdict(list)
    every: list[Fold] = [*views(world), *shelves(world)]
    for fold in every:
        if fold.store.service.name == service:
            alike[id(fold.store.memory)].append(fold)
    return [findings for folds in alike.values() for findings in await read(world, folds)]

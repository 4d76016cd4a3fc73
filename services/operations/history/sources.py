"""Makes opened stores the sources of an order's story."""

from services.operations.reading.stores import Stores
from services.shop.order_story import Source


def story_sources(stores: Stores) -> dict[str, Source]:
    return {store.decider.category: Source(store.events, store.decoder.decode) for store in stores.values()}

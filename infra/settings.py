"""Every setting of every process together: what `till` reads, and what docs/settings.md lists."""

import os
from pathlib import Path

from pydantic import Field

from analytics.settings import LakeSettings
from services.psp.settings import PspSettings
from services.shop.settings import ShopSettings


def default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "till-roll"


class Settings(ShopSettings, PspSettings, LakeSettings):
    """Combines the settings of shop, provider and lake, and adds those of the local stack."""

    cache: Path = Field(
        default_factory=default_cache,
        description="Downloaded jars and what is derived from them; shared by clones, safe to delete.",
    )
    split: bool = Field(False, description="Workers of the services as processes of their own (`till up --split`).")
    jar_repository: str = Field("", description="Root URL of a Maven repository. Default: the public one.")
    java_home: Path | None = Field(None, description="A JDK 17 or 21. Default: JAVA_HOME, then PATH.")
    kafka_heap: str = Field("384m", description="Heap of each local broker.")
    registry_heap: str = Field("192m", description="Heap of the local registry.")

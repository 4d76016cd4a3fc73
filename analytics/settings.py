"""Settings of the lake: where its tables are, and how Spark runs."""

from typing import Self

from pydantic import Field, model_validator

from shared.settings import Settings, derive


class LakeSettings(Settings):
    """Adds what the lake reads to the kernel's settings."""

    lake: str = Field("", description="Folder of the Delta tables. Default: `lake` in the home.")
    lake_batch_events: int = Field(
        200_000, ge=1, description="Most events that one batch of the lake's ingest takes from Kafka."
    )
    lake_history_days: float = Field(
        30, ge=0, description="How long old versions of the lake's tables stay readable (time travel)."
    )
    spark_master: str = Field("local[*]", description="`local[*]`, `spark://host:7077` or `k8s://https://host`.")
    spark_driver_memory: str = Field("1700m", description="Heap of the Spark driver; locally, that of all of Spark.")
    spark_config: str = Field(
        "", description="More settings of Spark: `key=value`, separated by spaces, quoted as in a shell."
    )

    @model_validator(mode="after")
    def _derive_lake(self) -> Self:
        return derive(self, lake=str(self.home / "lake"))

"""Runs the ingest once as a process of its own, so that tests can kill it."""

from analytics.ingest.stream import ingest_available
from analytics.lake import Lake
from infra.lake.spark import open_spark
from infra.settings import Settings
from shared.recovery import crash_points


def main() -> None:
    settings = Settings.load()
    crash_points.arm(settings.crash_at)
    ingest_available(Lake(open_spark(settings), settings))


if __name__ == "__main__":
    main()

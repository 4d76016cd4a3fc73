"""The ingest as a process of its own, to be killed: brings the lake up to the ends of the topics, and leaves."""

from analytics.ingest.stream import ingest_available
from infra.spark import open_spark
from shared import crashpoints
from shared.settings import Settings


def main() -> None:
    settings = Settings.load()
    crashpoints.arm(settings.crash_at)
    ingest_available(open_spark(settings), settings)


if __name__ == "__main__":
    main()

"""Ids in the stream ids of silver."""

from pyspark.sql import Column
from pyspark.sql import functions as sf


def id_of_stream() -> Column:
    """Takes the id out of `stream_id`: `7f3a` out of `cart:7f3a`."""
    return sf.substring_index("stream_id", ":", -1)

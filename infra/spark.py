"""The lake's Spark on this machine: the Java that was found, the jars that were installed."""

import os

from pyspark.sql import SparkSession

from analytics.session import lake_session
from infra.jars import jars
from infra.java import find_java
from shared.settings import Settings


def open_spark(settings: Settings) -> SparkSession:
    """PySpark starts the Java of JAVA_HOME, so that is where the one that was found has to be named."""
    os.environ["JAVA_HOME"] = str(find_java(settings).binary.parents[1])
    return lake_session(settings, jars(settings, "spark"))

"""Opens the lake's Spark session with the Java and the jars of this machine."""

import os

from pyspark.sql import SparkSession

from analytics.runtime.session import open_session
from infra.jars.bundles import jars
from infra.java.runtime import find_java
from infra.settings import Settings


def open_spark(settings: Settings) -> SparkSession:
    """Opens a session. PySpark starts the Java of JAVA_HOME, so that variable is set to the one that was found."""
    os.environ["JAVA_HOME"] = str(find_java(settings).binary.parents[1])
    return open_session(settings, jars(settings, "spark"))

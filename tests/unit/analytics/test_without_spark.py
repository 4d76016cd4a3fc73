"""Modules that read the lake without Spark do not even import it: `till sql` must not wait for a JVM."""

import subprocess
import sys

SPARKLESS = (
    "analytics.catalog",
    "analytics.lake",
    "analytics.log.progress",
    "analytics.query.ask",
    "analytics.query.delays",
    "analytics.query.freshness",
    "analytics.report.page",
    "analytics.tables",
)


def test_catalog_log_query_and_report_import_no_spark() -> None:
    script = (
        f"import sys, {', '.join(SPARKLESS)}; print([name for name in ('pyspark', 'delta') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")

"""Prints the events in Parquet files, as duckdb reads them, one JSON object a line.

The argument is a pattern of paths. The DuckDB of the package reads the files.
"""

import json
import sys

import duckdb

rows = duckdb.sql(
    "SELECT CAST(uuid AS VARCHAR), event, distinct_id, properties FROM read_parquet(?, hive_partitioning = true)",
    params=[sys.argv[1]],
).fetchall()
for uuid, event, distinct_id, properties in rows:
    print(json.dumps({"uuid": uuid, "event": event, "distinct_id": distinct_id, "properties": properties}))

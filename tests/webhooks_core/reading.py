"""How many rows of a table the database reads for a query, as PostgreSQL counts them."""

import time
from collections.abc import Iterator
from typing import Any

import orjson
from django.db import connection, transaction


def vacuum(*tables: str) -> None:
    """Vacuum until an index alone answers: a snapshot of autovacuum may keep rows from that.

    Indexes are made anew, since those that earlier tests left large would not be used.
    """
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"REINDEX TABLE {table}")
        for _ in range(100):
            cursor.execute(f"VACUUM ANALYZE {', '.join(tables)}")
            cursor.execute(
                "SELECT bool_and(relallvisible >= relpages) FROM pg_class WHERE relname = ANY(%s)",
                [list(tables)],
            )
            if cursor.fetchone()[0]:
                return
            time.sleep(0.1)
    raise AssertionError(f"not all rows of {tables} are visible to everyone")


def rows_read(sql: str, table: str) -> int:
    """Return how many rows of a table a statement reads from the table itself.

    What an index alone answers does not count. Tables are not scanned where an index
    will do, as it is with millions of rows.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        output = cursor.fetchone()[0]
    plan = output if isinstance(output, list) else orjson.loads(output)
    nodes = [
        node for node in _nodes(plan[0]["Plan"]) if node.get("Relation Name") == table
    ]
    return sum(_read(node) for node in nodes)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _read(node: dict[str, Any]) -> int:
    if node["Node Type"] == "Index Only Scan":
        return 0
    each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return int(each * node["Actual Loops"])

"""Store each event once; a job of your own reads the table and does the work."""

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS inbox (id TEXT PRIMARY KEY, type TEXT, body BLOB)"
INSERT = "INSERT INTO inbox VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"


def store(path, event, body):
    """Return True if the event is new."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(TABLE)
            cursor = connection.execute(INSERT, (event["id"], event["type"], body))
        return cursor.rowcount == 1
    finally:
        connection.close()

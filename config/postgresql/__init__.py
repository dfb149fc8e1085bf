"""Django's backend for PostgreSQL, with a check of the connection that needs no round trip."""

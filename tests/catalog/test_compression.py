from __future__ import annotations

import gzip

import pytest
import zstandard

from catalog import compression
from tests.catalog.factories import BookFactory

QUERY = "{ getAllBooks { id name author { firstName lastName } } }"


@pytest.fixture
def send(client, db):
    BookFactory.create_batch(50)

    def post(query=QUERY, accept="gzip"):
        return client.post(
            "/graphql",
            {"query": query},
            "application/json",
            headers={"Accept-Encoding": accept},
        )

    return post


def test_a_large_response_is_compressed(send):
    plain, compressed = send(accept=""), send()
    assert "Content-Encoding" not in plain
    assert compressed["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.content) == plain.content
    assert len(compressed.content) < len(plain.content)
    assert int(compressed["Content-Length"]) == len(compressed.content)
    assert "Accept-Encoding" in plain["Vary"]


def test_a_small_response_is_not(send):
    assert "Content-Encoding" not in send("{ __typename }")


def test_zstd_is_taken_where_it_is_installed(send):
    response = send(accept="gzip, zstd")
    assert response["Content-Encoding"] == "zstd"
    assert zstandard.decompress(response.content) == send(accept="").content


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.000, zstd;q=0", None),
        ("gzip;q=1.0, zstd;q=0.9", "gzip"),
        ("deflate, compress", None),
        ("zstd;q=0.2, gzip;q=0.1", "zstd"),
        ("gzip" * 2000, None),
    ],
)
def test_the_client_decides(accepted, coding):
    assert compression.preferred(accepted) == coding

"""GraphiQL, which a browser gets at `/graphql`, with operations to begin with."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

# A personal token goes behind "Bearer".
HEADERS = '{\n  "Authorization": "Bearer "\n}'

# One tab each, as GraphiQL's property `defaultTabs` takes them.
EXAMPLES: list[dict[str, Any]] = [
    {
        "query": """query Books {
  getAllBooks {
    id
    name
    pageCount
    author { firstName lastName }
    category { name }
  }
}"""
    },
    {
        "query": """query Shelves($longer: Int) {
  categories(orderBy: NAME_ASC) {
    nodes {
      name
      booksPage(first: 3, orderBy: PAGE_COUNT_DESC, filter: {minPageCount: $longer}) {
        nodes { name pageCount }
        totalCount
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}""",
        "variables": '{\n  "longer": 400\n}',
    },
    {
        "query": """query Search($title: String!) {
  searchBooks(title: $title) {
    name
    author { lastName bookCount }
  }
}""",
        "variables": '{\n  "title": "emma"\n}',
    },
    {
        "query": """mutation AddAuthor($author: AuthorInput!) {
  addAuthor(author: $author) {
    id
    firstName
    lastName
  }
}""",
        "variables": '{\n  "author": { "firstName": "Mary", "lastName": "Shelley" }\n}',
    },
]


def page(request: HttpRequest) -> HttpResponse:
    """Return the page, which neither reads nor writes anything."""
    tabs = [{"headers": HEADERS, **example} for example in EXAMPLES]
    return render(request, "catalog/graphiql.html", {"tabs": tabs})

"""GraphiQL, which a browser gets at `/graphql`, with an operation to begin with."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

# As GraphiQL's property `defaultTabs` takes it. A personal token goes behind "Bearer".
EXAMPLE = {
    "query": """query Books {
  getAllBooks {
    id
    name
    pageCount
    author { firstName lastName }
    category { name }
  }
}""",
    "headers": '{\n  "Authorization": "Bearer "\n}',
}


def page(request: HttpRequest) -> HttpResponse:
    """Return the page, which neither reads nor writes anything."""
    return render(request, "catalog/graphiql.html", {"tabs": [EXAMPLE]})

"""The operation that GraphiQL begins with."""

import json

from catalog.graphiql import EXAMPLE


def test_the_page_has_an_example_that_is_answered(ask, client, shelf):
    page = client.get("/graphql", headers={"Accept": "text/html"}).content.decode()
    data = page.split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(data) == [EXAMPLE]
    assert len(ask(EXAMPLE["query"])["data"]["getAllBooks"]) == 6

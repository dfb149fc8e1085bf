"""docs/oauth.md by hand: its commands, typed as they stand, and a person who presses Allow."""

import json
import os
import re
import secrets

from tests.docs.samples import filled, sample, shell
from tests.recording.oauth.flows import challenge_of, query_of
from tests.tools import needs

PAGE = "oauth.md"


def responses(script: str) -> list[dict[str, object]]:
    """Run a script; return the documents that its calls printed one after the other."""
    printed = shell(script.replace("curl ", "curl -sS "), variables=os.environ)
    documents, decoder = [], json.JSONDecoder()
    while printed := printed.strip():
        document, end = decoder.raw_decode(printed)
        documents.append(document)
        printed = printed[end:]
    return documents


@needs("bash", "curl")
def test_the_flow_by_hand_leads_to_tokens_that_work(person):
    code = sample(PAGE, "sh", "by-hand")
    code = filled(code, {"http://127.0.0.1:8000": person.url})
    begin, browser, exchange, use = re.split(r"^# [345]\.", code, flags=re.MULTILINE)
    base = begin.splitlines()[0] + "\n#"

    metadata, client = responses(begin)
    assert metadata["issuer"] == person.url
    values = {"ID": str(client["client_id"])}

    verifier = secrets.token_urlsafe(48)
    address = re.search(r"\$BASE(/oauth/authorize\S+)", re.sub(r"\n# +&", "&", browser))
    assert address
    verifier_values = {"RANDOM": "xyz", "=CHALLENGE": f"={challenge_of(verifier)}"}
    back = query_of(
        person.allow(person.url + filled(address[1], values | verifier_values))
    )
    assert (back["state"], back["iss"]) == ("xyz", person.url)

    values_then = values | {"=CODE": f"={back['code']}", "VERIFIER": verifier}
    [tokens] = responses(base + filled(exchange, values_then))
    example = json.loads(sample(PAGE, "json", "tokens"))
    assert tokens.keys() == example.keys()
    for name in ("token_type", "expires_in", "scope", "email"):
        assert tokens[name] == example[name]

    token_values = {
        name.upper(): str(tokens[name]) for name in ("access_token", "refresh_token")
    }
    listed, renewed = responses(base + filled(use, values | token_values))
    assert listed == {"items": []}
    assert renewed["access_token"] != tokens["access_token"]

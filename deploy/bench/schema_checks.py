"""What the API promises beside its schema; schema-fuzz.sh loads it."""

import schemathesis


@schemathesis.check
def answer_agrees_with_itself(ctx, response, case):
    """Status, body and X-Request-Id tell the same, and nothing of what is behind."""
    body = response.json()
    if "requestId" in body:
        assert [body["requestId"]] == response.headers["x-request-id"], "two request ids"
    if response.status_code != 200:
        assert body["msg"] != "SYSTEM_ERROR" and body["attempted"] is False, "a refusal of another form"
        assert body["retryable"] == (response.status_code in (408, 429, 503)), "a refusal that misleads"
        assert "server" not in response.headers, "the server names itself"
    for tell in ("/work", ".swift", "SELECT ", "INSERT ", "NIO", "ummingbird", "ostgres"):
        assert tell not in body.get("detail", ""), "the detail tells " + tell


def has_missing(value):
    """Whether a member counts as missing by the description's text, which the schema does not say: null or empty."""
    if isinstance(value, list):
        return any(has_missing(item) for item in value)
    return isinstance(value, dict) and any(item in (None, "") or has_missing(item) for item in value.values())


@schemathesis.check
def refused_when_out_of_schema(ctx, response, case):
    """What the schema forbids is not taken: the whole is refused, or in a batch at least one item."""
    if case.method == "GET" and getattr(case.meta and case.meta.phase.data, "parameter", None) == "Content-Type":
        return  # no body, so that its kind says nothing
    if case.meta is None or not case.meta.generation.mode.is_negative or response.status_code != 200:
        return
    body = response.json()
    if "success" not in body or has_missing(case.body) or has_missing(dict(case.query or {})):
        return
    fault = getattr(case.meta.phase.data, "location", None) or ""
    if "/binaryPayload" in fault and "payload" in case.body:
        return  # payload wins, and the other is not looked at
    results = body.get("results", [body])
    assert not all(result["success"] for result in results), "accepted: " + str(case.meta.phase.data)

"""Spans from OTLP's JSON and from Phoenix, in one form, and rules that all spans comply with.

A span is a dictionary with `id`, `trace`, `parent` (`None` for a root), `name`, `start` and `end` (milliseconds),
`attributes`, `events` and `error` (whether its status is ERROR). Its attributes are ours and those of the conventions: a
receiver may add others.
"""

from collections import Counter
from datetime import datetime

# The attributes that every span of an operation has.
COMMON = {"gen_ai.operation.name", "gen_ai.conversation.id", "gen_ai.agent.name"}
REQUIRED = {
    "invoke_agent": {"helix.run.id", "helix.turn", "helix.trigger", "helix.status", "helix.runtime"},
    "chat": {
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.finish_reasons",
        "helix.step",
        "helix.attempts",
    },
    "execute_tool": {"gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id", "helix.attempts"},
    "wait": {"gen_ai.tool.name", "gen_ai.tool.call.id", "helix.wait.kind", "helix.wait.outcome"},
}

# The attribute after the operation in the name of a span.
SUBJECT = {
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
    "wait": "gen_ai.tool.name",
}

# The attribute that distinguishes operations of the same kind within a session.
KEY = {
    "invoke_agent": "helix.run.id",
    "chat": "helix.step",
    "execute_tool": "gen_ai.tool.call.id",
    "wait": "gen_ai.tool.call.id",
}

OPERATION, SESSION = "gen_ai.operation.name", "gen_ai.conversation.id"


def by_id(found):
    """Returns spans by their ids."""
    ids = Counter(span["id"] for span in found)
    twice = [span for span, count in ids.items() if count > 1]
    assert not twice, f"there is more than one span with the id of {twice}"
    return {span["id"]: span for span in found}


def of_otlp(document):
    """Returns the spans of OTLP's JSON by their ids, with the kinds of the convention as `kind`."""

    def of(span):
        return {
            "id": span["spanId"],
            "trace": span["traceId"],
            "parent": span.get("parentSpanId") or None,
            "name": span["name"],
            "start": int(span["startTimeUnixNano"]) // 1_000_000,
            "end": int(span["endTimeUnixNano"]) // 1_000_000,
            "attributes": ours(attributes(span)),
            "events": [
                {"name": event["name"], "at": int(event["timeUnixNano"]) // 1_000_000, "attributes": attributes(event)}
                for event in span.get("events", [])
            ],
            "error": span.get("status", {}).get("code", 0) in (2, "STATUS_CODE_ERROR"),
            "kind": span["kind"],
            "links": [(link["traceId"], link["spanId"], attributes(link)["helix.link"]) for link in span.get("links", [])],
        }

    scopes = [scope for resource in document["resourceSpans"] for scope in resource["scopeSpans"]]
    return by_id([of(span) for scope in scopes for span in scope["spans"]])


def attributes(item):
    return {attribute["key"]: value(attribute["value"]) for attribute in item.get("attributes", [])}


def value(encoded):
    [(kind, found)] = encoded.items()
    if kind == "intValue":
        return int(found)
    if kind == "arrayValue":
        return [value(item) for item in found.get("values", [])]
    return found


def of_phoenix(listed):
    """Returns the spans of Phoenix's interface by their ids."""

    def of(span):
        return {
            "id": span["context"]["span_id"],
            "trace": span["context"]["trace_id"],
            "parent": span["parent_id"] or None,
            "name": span["name"],
            "start": milliseconds(span["start_time"]),
            "end": milliseconds(span["end_time"]),
            "attributes": ours(span["attributes"]),
            "events": [
                {"name": event["name"], "at": milliseconds(event["timestamp"]), "attributes": event["attributes"]}
                for event in span["events"]
            ],
            "error": span["status_code"] == "ERROR",
            # Phoenix has kinds of its own.
            "phoenix_kind": span["span_kind"],
        }

    return by_id([of(span) for span in listed])


def milliseconds(text):
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def ours(found):
    return {name: item for name, item in found.items() if name.startswith(("gen_ai.", "helix.", "error."))}


def shared(span):
    """Returns the part of a span that both sources have."""
    return {name: span[name] for name in ("id", "trace", "parent", "name", "start", "end", "attributes", "events", "error")}


def check_tree(test, found):
    """Checks that each parent exists in the same trace, and that each span has a root above it."""
    for span in found.values():
        above, seen = span, set()
        while above["parent"] is not None:
            test.assertNotIn(above["id"], seen, f"the parents of {span['name']} form a circle")
            seen.add(above["id"])
            test.assertIn(above["parent"], found, f"the parent of {above['name']} is missing")
            test.assertEqual(found[above["parent"]]["trace"], above["trace"])
            above = found[above["parent"]]


def check_names(test, found):
    """Checks names, times and required attributes, and that no operation has two spans."""
    keys = Counter()
    for span in found.values():
        attributes = span["attributes"]
        operation = attributes.get(OPERATION)
        test.assertIn(operation, REQUIRED, span)
        missing = (COMMON | REQUIRED[operation]) - attributes.keys()
        test.assertFalse(missing, f"{span['name']} has no {missing}")
        test.assertEqual(span["name"], f"{operation} {attributes[SUBJECT[operation]]}")
        test.assertLessEqual(span["start"], span["end"], span)
        test.assertEqual(span["error"], "error.type" in attributes, span)
        keys[attributes[SESSION], operation, attributes[KEY[operation]]] += 1
    test.assertFalse([key for key, count in keys.items() if count > 1], "an operation has several spans")


def tokens(found):
    """Returns the sums of input and output tokens."""
    return tuple(
        sum(span["attributes"].get(f"gen_ai.usage.{kind}_tokens", 0) for span in found.values())
        for kind in ("input", "output")
    )

"""The rules of the API that no schema can express, each with its reason, and how the fuzzer stays on this machine.

The server must accept a request that the document allows, unless it answers with a problem and BEYOND_A_SCHEMA lists
everything that the problem names.
"""

import itertools
import json
import re
import zlib
from pathlib import Path

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

# The code of the problem or of the field, the pointer and the detail must all match. Last: why no schema can say it.
BEYOND_A_SCHEMA = [
    ("invalid_cursor", "", "", "a cursor is what an earlier page said, and belongs to one list"),
    ("idempotency_key_mismatch", "", "", "the header and the field have to agree"),
    ("invalid_parameter", "", "^wait: (must not be longer|.* expected a duration)", "the range of a duration that is a text"),
    ("invalid_parameter", "", "^task: .* is not a fan-out", "what a name stands for"),
    ("out_of_range", "", "must (not be longer than|be from|be 1ms)", "the range of a duration that is a text"),
    ("out_of_range", "/every$", "", "the range of a duration that is a text"),
    ("invalid_value", "/every$", "must be whole seconds", "what a duration that is a text comes to: 1.5m is whole, 1.5s is not"),
    ("wrong_type", "", r"found the number [0-9e+]+\.0", "a whole number is written without a fraction; a schema does not tell them apart"),
    ("invalid_value", "", "expected a duration", "a duration of more milliseconds than can be counted"),
    ("out_of_range", "", "a time from 1970", "the range of a moment that is a text"),
    ("invalid_parameter", "", "a time from 1970", "the range of a moment that is a text"),
    ("conflict", "", "", "two fields that contradict each other; null is the same as leaving one out"),
    ("missing_field", "/(cron|all)$", "", "one of several fields has to be there"),
    ("invalid_value", "/all$", "give a", "one of several fields has to be there"),
    ("invalid_value", "/job$", "is required, or tasks", "one of several fields has to be there"),
    ("invalid_cron", "", "", "what a cron expression is"),
    ("unknown_timezone", "", "", "which zones there are"),
    ("(invalid_value|too_many)", "/(exclude|days)/[0-9]+$", "", "which days a month has, the order of two days, which calendars there are"),
    ("reserved", "/headers/", "", "names of headers without regard to case"),
    ("invalid_value", "/headers/", "is not a valid header name", "the names of fields that nobody knows beforehand"),
    ("too_many", "/headers$", "", "the number of fields that nobody knows beforehand"),
    ("not_allowed", "/target/process/", "", "what the operator of the server allows"),
    ("invalid_value", "/process/command$", "must begin with a program", "the first of a list, which is not like the others"),
    ("(invalid_value|reserved)", "/process/env/", "", "the names of fields that nobody knows beforehand"),
    ("too_many", "/process/env$", "", "the number of fields that nobody knows beforehand"),
    ("too_long", "/process/(command|env|cwd)$", "", "the bytes of texts together"),
    ("out_of_range", "/snooze/delay$", "must be 1s or longer", "the range of a duration that is a text"),
    ("reserved", "/name$", "", "names that are taken for good"),
    ("too_many", "/tasks$", "more than", "the tasks of three lists together, at every depth"),
    ("unknown_parent", "/depends_on/", "", "which jobs there are"),
    ("(unknown_task|duplicate_task|cycle)", "", "", "tasks name each other"),
    ("invalid_value", "(/when|/for_each|/payload|/depends_on).*", "", "what expressions and paths refer to"),
    ("invalid_value", "/input$", "", "what the tasks of a workflow make of its input"),
    ("invalid_value", "/(from|to)$", "", "what a schedule has in a range"),
    ("(too_many|invalid_value|out_of_range)", "/(to|rate)$", "", "what a schedule has in a range"),
    ("(malformed|too_many)", "^$", "", "what a calendar file is"),
    ("payload_too_large", "", "", "the bytes of a text"),
    ("too_long", "/(payload|metadata|url|callback_url)$", "", "the bytes of a text"),
]

# An unknown name is no fault of the request, nor is a state that does not allow it.
NOT_THE_REQUESTS_FAULT = {401, 403, 404, 408, 409}


def complaints(problem):
    """What a problem complains of, field by field; of a problem without fields, the problem itself."""
    fields = problem.get("errors") or [{"code": problem["code"], "pointer": "", "detail": problem["detail"]}]
    return [(problem["code"], field["code"], field["pointer"], field["detail"]) for field in fields]


def is_beyond_a_schema(complaint):
    problem_code, field_code, pointer, detail = complaint
    return any(
        (re.fullmatch(code, field_code) or re.fullmatch(code, problem_code))
        and re.search(place, pointer)
        and re.search(words, detail)
        for code, place, words, _reason in BEYOND_A_SCHEMA
    )


@schemathesis.check
def accepted_or_beyond_a_schema(ctx, response, case):
    """A request that keeps to the document is accepted, or refused by a rule that is listed here."""
    if not is_positive(case):
        return
    if response.status_code < 400 or response.status_code >= 500 or response.status_code in NOT_THE_REQUESTS_FAULT:
        return
    unlisted = [complaint for complaint in complaints(response.json()) if not is_beyond_a_schema(complaint)]
    assert not unlisted, f"the document allows it, and it was refused: {unlisted}"


# Formats of our own: a random text would never be valid.
CRON = ["* * * * *", "0 2 * * *", "*/15 9-17 * * 1-5", "30 0 0 1 1 *", "0 0 L * *", "@daily", "@every 90s"]
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"]
PATHS = ["input", "input.files", "input.a[0]"]
CONDITIONS = ["true", "input.rows > 0", 'input.kind == "a" && !input.off']
schemathesis.openapi.format("cron", st.sampled_from(CRON))
schemathesis.openapi.format("time-zone", st.sampled_from(ZONES))
schemathesis.openapi.format("data-path", st.sampled_from(PATHS))
schemathesis.openapi.format("condition", st.sampled_from(CONDITIONS))

# Where the server may send requests while it is fuzzed: a closed port of this machine.
NOWHERE = "http://127.0.0.1:9/"
# What the server accepts as a URL.
URL = json.loads(Path("docs/reference/openapi.json").read_text())["components"]["schemas"]["Url"]["pattern"]


def kept_here(value, key=None):
    """The same with every URL leading nowhere."""
    if isinstance(value, dict):
        return {name: kept_here(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [kept_here(part, key) for part in value]
    if key in ("url", "callback_url") and isinstance(value, str) and re.match(URL, value):
        return NOWHERE
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    if is_positive(case) and isinstance(case.body, dict) and takes_turns(case.body):
        case.body = made_possible(case.body, "idempotency-key" in {name.lower() for name in case.headers or {}})
        if case.method.upper() == "PUT":
            # The path says it; what is said again has to be the same.
            case.body.pop("name", None)
    if isinstance(case.body, (dict, list)):
        case.body = kept_here(case.body)
    # OpenAPI cannot require a content type without content. The server does, so that no web page can send the
    # request.
    if case.method.upper() == "POST" and not has_body(case):
        case.headers = {**(case.headers or {}), "Content-Type": "application/json"}


def is_positive(case):
    return case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE


def has_body(case):
    return case.body is not None and not isinstance(case.body, schemathesis.core.NotSet)


# Almost every random schedule or workflow breaks a rule that no schema can express, so none would ever be stored.
# Therefore three of four requests are changed to keep those rules. The others show that the server rejects them properly.


def takes_turns(body):
    return zlib.crc32(json.dumps(body, sort_keys=True).encode()) % 4 != 0


DURATIONS = {"timeout", "delay", "initial_delay", "max_delay", "window", "jitter", "every", "stall_after"}


def made_possible(value, has_key_in_header=False, key=None):
    """The same, keeping the rules of BEYOND_A_SCHEMA."""
    if isinstance(value, list):
        return [made_possible(part, key=key) for part in value]
    if key in DURATIONS and isinstance(value, (int, float, str)):
        return "90s"
    if not isinstance(value, dict) or key in ("payload", "metadata", "input", "result"):
        # `$from` anywhere inside would be a reference.
        return None if key == "payload" else value
    body = {name: made_possible(part, key=name) for name, part in value.items()}
    if key == "retry":
        # A fraction of the delay here, a duration elsewhere.
        body["jitter"] = value.get("jitter")
        body["delays"] = body.get("delays") and ["90s" for _ in body["delays"]]
    if key == "headers":
        body = {name: part for name, part in body.items() if re.fullmatch("x-[a-z]+", name)}
    if key == "process":
        # The only one that the server allows.
        body["command"] = ["true", *body.get("command", [])[1:]]
        body["env"] = {name: part for name, part in (body.get("env") or {}).items() if re.fullmatch("x_[a-z]+", name)}
    if key == "exit_codes":
        # A code may be in one list only.
        body = {name: part for name, part in body.items() if name == "snooze"}
    if key == "snooze":
        body["codes"] = [75]
    if has_key_in_header:
        body.pop("idempotency_key", None)
    if body.get("execute_at") is not None:
        body.pop("delay", None)
    body.pop("max_delay", None)
    for name in ("start_at", "end_at", "anchor", "execute_at", "after"):
        if isinstance(body.get(name), str):
            body.pop(name)
    if "exclude" in body:
        body["exclude"] = ["2026-12-25", "2026-12-24/2026-12-31"]
    if "days" in body:
        body["days"] = ["2026-12-25"]
    is_schedule = key == "schedule" or (key is None and "job" in body and "name" in body)
    if is_schedule and key is None:
        # Otherwise most would have the same name as the first.
        body["name"] = f"s{zlib.crc32(json.dumps(value, sort_keys=True).encode())}"
    if is_schedule or "cron" in body or "every" in body:
        one = "cron" if body.get("cron") else "every" if body.get("every") else None
        body = {name: part for name, part in body.items() if name not in ("cron", "every") or name == one}
        body.update({} if one else {"cron": "@daily"})
    if isinstance(body.get("job"), dict):
        for name in ("delay", "execute_at", "idempotency_key", "depends_on"):
            body["job"].pop(name, None)
    if isinstance(body.get("depends_on"), list) and "type" in body:
        body["depends_on"] = []
    return with_tasks(body) if "tasks" in body and "name" in body and key != "tasks" else body


def with_tasks(workflow):
    """The same with tasks that are a graph: each waits for the one before it."""
    names = itertools.count()
    before = {}

    def task(given, place):
        name = f"t{next(names)}"
        kept = {field: given[field] for field in ("trigger_rule", "when", "for_each", "job") if given.get(field) is not None}
        waits_for = [before[place]] if place in before else []
        before[place] = name
        return {"job": {}, **kept, "name": name, "depends_on": waits_for}

    for place in ("before", "tasks", "after"):
        if isinstance(workflow.get(place), list):
            workflow[place] = [task(given, place) for given in workflow[place]]
    return workflow

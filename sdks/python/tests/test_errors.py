import re
from pathlib import Path

import pytest

from tickwheel import errors
from tickwheel.errors import NotFound, Problem, ValidationFailed, code_of, problem_from

ERRORS_MD = Path(__file__).resolve().parents[3] / "docs/reference/errors.md"


def test_each_problem_code_of_the_server_is_a_class() -> None:
    section = ERRORS_MD.read_text(encoding="utf-8").split("## Problem codes")[1].split("## Field codes")[0]
    codes = set(re.findall(r"^\| \d+ \| `(\w+)` \|", section, re.M))
    assert codes
    assert codes <= set(errors.PROBLEMS)


def test_a_problem_carries_what_the_server_said() -> None:
    body = {
        "code": "validation_failed",
        "detail": "1 field is wrong",
        "errors": [{"pointer": "/retry/jitter", "code": "out_of_range", "detail": "must be from 0 to 1"}],
    }
    problem = problem_from(422, body)
    assert isinstance(problem, ValidationFailed)
    assert (problem.status, problem.code, problem.errors[0].pointer) == (422, "validation_failed", "/retry/jitter")
    assert "/retry/jitter: must be from 0 to 1" in str(problem)


@pytest.mark.parametrize(("status", "body", "code"), [(404, None, "not_found"), (502, "<html>", "unknown")])
def test_an_answer_that_is_no_problem_document_is_a_problem_too(status: int, body: object, code: str) -> None:
    problem = problem_from(status, body)
    assert (problem.status, problem.code) == (status, code)
    assert isinstance(problem, NotFound) == (status == 404)


def test_a_code_from_the_future_is_a_plain_problem() -> None:
    assert type(problem_from(409, {"code": "brand_new"})) is Problem


@pytest.mark.parametrize(
    ("name", "code"),
    [("BadAddress", "bad_address"), ("HTTPError", "http_error"), ("X", "x"), ("IOError2", "io_error2")],
)
def test_a_failure_code_is_the_class_in_snake_case(name: str, code: str) -> None:
    assert code_of(type(name, (Exception,), {})()) == code


def test_a_given_code_wins_unless_it_is_none() -> None:
    assert code_of(errors.NotRetryable("x", code="nope")) == "nope"
    assert code_of(errors.NotRetryable("x")) == "not_retryable"
    assert code_of(SystemExit(3)) == "system_exit"

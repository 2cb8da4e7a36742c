from datetime import timedelta
from typing import Any

import pytest

from tickwheel._durations import seconds, to_wire


@pytest.mark.parametrize(
    ("written", "means"),
    [("250ms", 0.25), ("30s", 30), ("5m", 300), ("4h", 14400), ("1d", 86400), ("299.9s", 299.9), ("7", 7), (7, 7)]
    + [(0.5, 0.5), (timedelta(minutes=1), 60), ("0s", 0)],
)
def test_a_duration_is_read(written: Any, means: float) -> None:
    assert seconds(written) == pytest.approx(means)


@pytest.mark.parametrize("written", ["", "banana", "-1s", "1 s", "1w", "1e3s", -1, float("inf"), float("nan"), True])
def test_what_is_no_duration_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        seconds(written)


def test_durations_go_out_in_milliseconds_and_never_become_zero() -> None:
    assert to_wire("1.5s") == "1500ms"
    assert to_wire(0.00001) == "1ms"
    assert to_wire(0) == "0ms"

"""Waiting for an event, but not for ever."""

from __future__ import annotations

import asyncio


async def wait(event: asyncio.Event, timeout_s: float) -> None:
    """Returns when the event is set or the time is over."""
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        pass


async def wait_for_either(one: asyncio.Event, other: asyncio.Event, timeout_s: float) -> None:
    """Returns when one of them is set or the time is over."""
    tasks = [asyncio.ensure_future(one.wait()), asyncio.ensure_future(other.wait())]
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()

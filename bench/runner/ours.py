"""How ours is measured: the engine inside one process with an executor that does nothing, or a server whose jobs are
submitted and called over HTTP. `on` is the store: `servers.fresh` or `prepared.filled`."""

from . import servers, tools
from .asking import both, run, spread
from .search import highest_rate

START_LAG_MS_MAX = 100
STEADY_TRIES = 2


def engine(store, *arguments):
    return run(tools.TICKWHEEL, "bench", "--json", *store.arguments, *arguments)[-1]


def engine_asked(on, *arguments):
    with on() as store:
        return engine(store, *arguments)


def engine_drain(on, jobs):
    return lambda: {"per_s": engine_asked(on, "--only", "drain", "--jobs", jobs)["drain_per_s"]}


def engine_lag(on, rate, seconds):
    return lambda: engine_asked(on, "--only", "punctuality", "--rates", rate, "--seconds", seconds)["lag_ms"]


def engine_idle(on, jobs, which):
    return lambda: engine_asked(on, "--only", "latency", "--single-jobs", jobs)[which]


def engine_burst(on, jobs):
    return lambda: engine_asked(on, "--only", "burst", "--jobs", jobs)["lag_ms"]


def engine_cron(on):
    """Next firings of cron expressions, on one thread."""
    return lambda: {"per_s": engine_asked(on, "--only", "cron")["next_per_s"]}


def engine_schedules(on, seconds, *arguments):
    """How late the jobs of schedules start, the memory of the engine, and on PostgreSQL how many rows a firing writes."""

    def ask():
        with on() as store:
            before = servers.rows_written(store)
            seen = engine(store, "--only", "schedules", "--seconds", seconds, *arguments)
            rows = (servers.rows_written(store) - before) / seen["fired"]
            return {**seen["lag_ms"], "peak_mib": seen["peak_mib"], "fired": seen["fired"], "rows_per_firing": rows}

    return ask


def engine_few(on, jobs):
    """How long a few jobs wait beside this many jobs of another tenant."""
    return lambda: engine_asked(on, "--only", "fairness", "--jobs", jobs)["few_wait_ms"]


def engine_last(on, jobs):
    """How long a job waits that has to wait for this many."""

    def ask():
        wait_ms = 1000 * jobs / engine_drain(on, jobs)()["per_s"]
        return {"p50": wait_ms, "max": wait_ms}

    return ask


def engine_workflow(on, shape, tasks, rounds):
    """Workflow runs and as many plain jobs, in turn in one process: how fast, and with how much processor time, including
    the database server's."""

    def measure():
        with on() as store:
            arguments = ["--shapes", shape, "--tasks", tasks, "--rounds", rounds, *servers.database_pid(store)]
            seen = engine(store, "--only", "workflows", *arguments)
        return {"run": effort(seen["as_run"]), "jobs": effort(seen["as_jobs"])}

    return both("run", "jobs", measure)


def effort(seen):
    own, database = seen["cpu_us"], seen["database_cpu_us"]
    link_ms = 1000 / seen["per_s"]
    return {"per_s": seen["per_s"], "link_ms": link_ms, "cpu_us": own + database, "own_cpu_us": own, "database_cpu_us": database}


def engine_beside(on, tasks, rate, seconds):
    """The lag of plain jobs beside workflow runs, with the times to start and to read a run; and the lag without them."""

    def measure():
        arguments = ["--tasks", tasks, "--rates", rate, "--seconds", seconds]
        seen = engine_asked(on, "--only", "beside-workflows", *arguments)
        times = {"start_ms": seen["start_ms"]["p50"], "read_ms": seen["read_ms"]["p50"]}
        more = {name: seen[name] for name in ("runs", "reads", "peak_mib")}
        return {"beside": {**seen["lag_ms"], **times, **more}, "alone": seen["lag_alone_ms"]}

    return both("beside", "alone", measure)


def highest_in_time(lag, first):
    """The highest rate at which `lag(rate)` is small enough. A second try allows for other load on the machine."""
    in_time = lambda rate: any(lag(rate)["p99"] < START_LAG_MS_MAX for _ in range(STEADY_TRIES))
    return {"per_s": highest_rate(in_time, first)}


def engine_steady(on, first, seconds):
    def ask():
        with on() as store:
            lag = lambda rate: engine(store, "--only", "end-to-end", "--rates", rate, "--seconds", seconds)["lag_ms"]
            return highest_in_time(lag, first)

    return ask


def http(on, verb, *numbers):
    with on() as store, servers.tickwheel(store) as server:
        return run(tools.LOAD, verb, server.address, *numbers)


def http_submit(on, in_flight, batch, jobs):
    return lambda: {"per_s": http(on, "submit", in_flight, batch, jobs)["submit_per_s"]}


def http_drain(on, jobs):
    return lambda: {"per_s": http(on, "drain", jobs)["drain_per_s"]}


def http_lag(on, rate, seconds):
    return lambda: spread(http(on, "lag", rate, seconds)["samples_ms"])


def http_idle(on, jobs):
    return lambda: spread(http(on, "idle", jobs)["samples_ms"])


def http_burst(on, jobs):
    return lambda: spread(http(on, "burst", jobs)["samples_ms"])


def http_steady(on, first, seconds):
    def ask():
        with on() as store, servers.tickwheel(store) as server:
            lag = lambda rate: spread(run(tools.LOAD, "steady", server.address, rate, seconds)["samples_ms"])
            return highest_in_time(lag, first)

    return ask

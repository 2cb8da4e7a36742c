"""The proxy and the reading of events, on their own: a fault that does nothing would prove nothing."""

import http.client
import http.server
import json
import threading
import time

import pytest

from harness.program import Program
from harness.proxy import Proxy, kind_of


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.calls.append(self.path)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy():
    Handler.calls = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # resets are what we are after
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = Proxy(lambda: server.server_address)
    yield proxy
    proxy.close()
    server.shutdown()
    server.server_close()


def post(connection, path="/api/v1/workers/1/poll", body=None):
    connection.request("POST", path, json.dumps(body or {}), {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())


def connect(proxy, timeout=5.0):
    return http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=timeout)


def test_calls_have_kinds():
    assert kind_of("POST", "/api/v1/workers") == "register"
    assert kind_of("POST", "/api/v1/workers/a-1/report") == "report"
    assert kind_of("DELETE", "/api/v1/workers/a-1?reason=drained") == "leave"
    assert kind_of("POST", "/api/v1/attempts/t/once/smtp/done") == "once"
    assert kind_of("POST", "/api/v1/jobs/batch") == "submit"
    assert kind_of("GET", "/api/v1/jobs") == "other"


def test_what_passes_is_remembered(proxy):
    connection = connect(proxy)
    for number in range(3):
        assert post(connection, body={"seq": number}) == {"seq": number}
    assert [request.json()["seq"] for request in proxy.of_kind("poll")] == [0, 1, 2]
    assert [request.status for request in proxy.requests] == [200, 200, 200]


def test_a_swallowed_answer_was_given(proxy):
    fault = proxy.swallow("poll")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        post(connect(proxy))
    assert len(Handler.calls) == 1 and len(fault.hits) == 1
    assert post(connect(proxy), body={"seq": 2}) == {"seq": 2}


def test_silence_is_not_an_end(proxy):
    proxy.swallow("poll", silently=True)
    with pytest.raises(TimeoutError):
        post(connect(proxy, timeout=0.3))
    assert len(Handler.calls) == 1


def test_other_kinds_are_left_alone(proxy):
    proxy.swallow("report")
    assert post(connect(proxy), body={"seq": 1}) == {"seq": 1}


def test_a_cut_ends_connections_and_refuses_new_ones(proxy):
    connection = connect(proxy)
    post(connection)
    proxy.cut()
    for one in (connection, connect(proxy)):
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            post(one)
    proxy.heal()
    assert post(connect(proxy), body={"seq": 1}) == {"seq": 1}
    assert len(Handler.calls) == 2


def test_nothing_passes_while_frozen(proxy):
    proxy.freeze()
    with pytest.raises(TimeoutError):
        post(connect(proxy, timeout=0.3))
    assert Handler.calls == []
    proxy.heal()
    assert post(connect(proxy), body={"seq": 1}) == {"seq": 1}


def test_answers_can_be_delayed_and_made_up(proxy):
    proxy.delay("poll", 0.4)
    begun = time.monotonic()
    post(connect(proxy))
    assert time.monotonic() - begun >= 0.4
    proxy.answer("poll", 200, {"made": "up"}, count=1)
    assert post(connect(proxy)) == {"made": "up"}
    assert len(Handler.calls) == 1


def test_keys_are_checked_once_there_are_some(proxy):
    proxy.keys = {"tw_good"}
    assert post(connect(proxy))["code"] == "unauthorized"
    assert Handler.calls == []


def test_half_a_line_of_events_waits_for_its_other_half(tmp_path):
    program = Program(["true"], tmp_path, "worker", {})
    with open(program.events_path, "a", buffering=1) as file:
        file.write('{"event": "start", "job_id": "a"}\n{"event": ')
        file.flush()
        assert program.events() == [{"event": "start", "job_id": "a"}]
        file.write('"end", "job_id": "a"}\n')
        file.flush()
        assert program.events("end", "a") == [{"event": "end", "job_id": "a"}]

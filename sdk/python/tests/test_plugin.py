"""Errors, mistakes of authors, locks, deduplication and the served answers."""

from __future__ import annotations

import json
import threading
import time
import unittest
from datetime import timedelta
from typing import Any, Optional

import grpc
from google.protobuf import duration_pb2

import guidon_plugin as guidon
from guidon_plugin import _errors
from guidon_plugin._instance import SharedLock
from guidon_plugin._kinds import MatcherService, NotifierService, SinkService
from guidon_plugin._pb.guidon.match.v1 import match_pb2
from guidon_plugin._pb.guidon.notify.v1 import notify_pb2
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2
from guidon_plugin._pb.guidon.sink.v1 import sink_pb2
from guidon_plugin._server import Server


class Context:
    """A call without a connection."""

    def __init__(self, limit: Optional[float] = 5) -> None:
        self._limit = limit

    def time_remaining(self) -> Optional[float]:
        return self._limit

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise AssertionError(f"{code}: {details}")


call: Any = Context()


class Store(guidon.Sink):
    fails: Optional[Exception] = None
    stored: list[bytes] = []
    closed = 0

    def open(self, request: guidon.OpenRequest) -> guidon.SinkProperties:
        if self.fails:
            raise self.fails
        return guidon.SinkProperties(dedup=guidon.Dedup.BY_EVENT_ID)

    def write(self, batch: guidon.Batch) -> guidon.WriteResult:
        self.stored.extend(r.json for r in batch.records)
        bad = [guidon.Failure(i, guidon.Permanent("bad")) for i, r in enumerate(batch.records) if b"bad" in r.json]
        if any(b"bug" in r.json for r in batch.records):
            raise KeyError("bug")
        return batch.partial(bad)

    def close(self) -> None:
        type(self).closed += 1


def batch(*texts: str) -> sink_pb2.WriteBatchRequest:
    n = len(texts)
    records = sink_pb2.RecordBatch(
        ids=bytes(16 * n), json=[t.encode() for t in texts], received_us=[1] * n, project_index=[0] * n, projects=[7]
    )
    return sink_pb2.WriteBatchRequest(instance_id="i", batch_id="b", first_seq=5, last_seq=4 + n, records=records)


class Errors(unittest.TestCase):
    def test_classes(self) -> None:
        for raised, want in (
            (TimeoutError(), "CLASS_TRANSIENT"),
            (ConnectionResetError(), "CLASS_TRANSIENT"),
            (RuntimeError("away"), "CLASS_TRANSIENT"),
            (KeyError("x"), "CLASS_INTERNAL"),
            (ValueError("x"), "CLASS_INTERNAL"),
            (guidon.Permanent("x"), "CLASS_PERMANENT"),
            (guidon.ConfigError("x"), "CLASS_CONFIG"),
            (guidon.NotConnected("x"), "CLASS_NOT_CONNECTED"),
            (guidon.Unsupported("x"), "CLASS_UNSUPPORTED"),
        ):
            proto = _errors.to_proto(raised)
            assert proto is not None
            self.assertEqual(plugin_pb2.Error.Class.Name(getattr(proto, "class")), want, raised)

    def test_throttled(self) -> None:
        proto = _errors.to_proto(guidon.Throttled("slow", retry_after=timedelta(seconds=3)))
        assert proto is not None
        self.assertEqual(proto.retry_after, duration_pb2.Duration(seconds=3))
        self.assertEqual(proto.source, plugin_pb2.Error.SOURCE_DOWNSTREAM)


class Mistakes(unittest.TestCase):
    def test_plugin(self) -> None:
        class Misspelt(Store):
            def flush(self) -> None:  # type: ignore[override]
                pass

        for plugin, want in (
            (guidon.Plugin("Acme", "1.0.0", sink=Store), "lower case"),
            (guidon.Plugin("acme", "1", sink=Store), "not semantic"),
            (guidon.Plugin("acme", "1.0.0"), "offers nothing"),
            (guidon.Plugin("acme", "1.0.0", sink=Misspelt), "Misspelt.flush must be"),
        ):
            self.assertIn(want, plugin.mistake() or "")
        self.assertIsNone(guidon.Plugin("acme/x", "1.0.0", sink=Store).mistake())

    def test_features(self) -> None:
        class Checks(Store):
            def check(self) -> None: ...

        self.assertIn("sink/check/v1", guidon.Plugin("a", "1.0.0", sink=Checks).features())
        self.assertNotIn("sink/flush/v1", guidon.Plugin("a", "1.0.0", sink=Checks).features())


class Sinks(unittest.TestCase):
    def setUp(self) -> None:
        Store.stored, Store.fails, Store.closed = [], None, 0
        self.server = Server(guidon.Plugin("acme/x", "1.0.0", sink=Store))
        self.service = SinkService(self.server)

    def configure(self, generation: int = 1, text: str = "{}") -> plugin_pb2.ConfigureResponse:
        config = plugin_pb2.Config(config_json=text.encode())
        request = plugin_pb2.ConfigureRequest(instance_id="i", generation=generation, config=config)
        return self.server.configure(request, call)

    def open(self) -> sink_pb2.OpenResponse:
        return self.service.open(sink_pb2.OpenRequest(instance_id="i"), call)

    def test_life(self) -> None:
        self.assertEqual(self.service.write(batch("{}"), call).error.code, "unknown_instance")
        self.assertTrue(self.configure().accepted)
        self.assertEqual(self.service.write(batch("{}"), call).error.code, "not_open")
        opened = self.open()
        self.assertTrue(opened.opened)
        self.assertEqual(opened.properties.dedup, sink_pb2.SinkProperties.DEDUP_BY_EVENT_ID)
        out = self.service.write(batch('{"a":1}', '{"b":2}'), call)
        self.assertEqual((out.outcome, out.committed_through), (sink_pb2.WriteBatchResponse.OUTCOME_COMMITTED, 6))
        self.assertEqual(Store.stored, [b'{"a":1}', b'{"b":2}'])
        self.assertTrue(self.server.close(plugin_pb2.CloseRequest(instance_id="i"), call).closed)
        self.assertEqual(Store.closed, 1)
        self.assertTrue(self.server.close(plugin_pb2.CloseRequest(instance_id="i"), call).closed)

    def test_outcomes(self) -> None:
        self.configure()
        self.open()
        out = self.service.write(batch("{}", '"bad"'), call)
        self.assertEqual((out.outcome, out.failures[0].index), (sink_pb2.WriteBatchResponse.OUTCOME_PARTIAL, 1))
        with self.assertLogs("guidon_plugin", "ERROR"):
            out = self.service.write(batch('"bug"'), call)
        self.assertEqual(out.outcome, sink_pb2.WriteBatchResponse.OUTCOME_REJECTED)
        self.assertEqual(getattr(out.error, "class"), plugin_pb2.Error.CLASS_INTERNAL)

    def test_generations(self) -> None:
        for generation, accepted in ((5, True), (5, True), (4, False), (6, True)):
            self.assertEqual(self.configure(generation).accepted, accepted)
        self.assertEqual(self.configure(7, '{"x": 1}').diagnostics[0].pointer, "/x")

    def test_open_fails(self) -> None:
        self.configure()
        Store.fails = OSError("away")
        out = self.open()
        self.assertEqual(getattr(out.error, "class"), plugin_pb2.Error.CLASS_TRANSIENT)
        health = self.server.health(plugin_pb2.HealthRequest(), call).instances[0]
        self.assertEqual(health.status, plugin_pb2.InstanceHealth.STATUS_FAILED)
        self.assertEqual(Store.closed, 1)

    def test_drain_refuses_work(self) -> None:
        self.configure()
        self.open()
        self.assertTrue(self.server.drain(plugin_pb2.DrainRequest(), call).drained)
        self.assertEqual(self.service.write(batch("{}"), call).error.code, "draining")


class Chat(guidon.Notifier):
    posts = 0
    fails: Optional[Exception] = None

    def open(self, request: guidon.OpenRequest) -> guidon.NotifierProperties:
        return guidon.NotifierProperties(max_in_flight=4)

    def notify(self, notification: guidon.Notification) -> guidon.NotifyResult:
        if self.fails:
            raise self.fails
        time.sleep(0.01)
        type(self).posts += 1
        return guidon.NotifyResult.delivered("m")


class Notifiers(unittest.TestCase):
    def setUp(self) -> None:
        Chat.posts, Chat.fails = 0, None
        server = Server(guidon.Plugin("acme/x", "1.0.0", notifier=Chat))
        server.configure(plugin_pb2.ConfigureRequest(instance_id="i", generation=1), call)
        self.service = NotifierService(server)
        self.assertTrue(self.service.open(notify_pb2.OpenRequest(instance_id="i"), call).opened)

    def notify(self, *items: notify_pb2.Notification) -> list[int]:
        out = self.service.notify(notify_pb2.NotifyRequest(instance_id="i", items=items), call)
        return [r.outcome for r in out.results]

    def test_a_repetition_posts_nothing(self) -> None:
        one = notify_pb2.Notification(notification_id="n1")
        self.assertEqual(sorted(self.notify(one, one, one)), [1, 2, 2])
        self.assertEqual(self.notify(one), [2])
        self.assertEqual(Chat.posts, 1)

    def test_failures(self) -> None:
        one = notify_pb2.Notification(notification_id="n2")
        for fails, outcome in ((guidon.Permanent("x"), 4), (RuntimeError("x"), 3), (guidon.ConfigError("x"), 3)):
            Chat.fails = fails
            self.assertEqual(self.notify(one), [outcome])
        elsewhere = notify_pb2.Notification(notification_id="n3", destination="d")
        self.assertEqual(self.notify(elsewhere), [4])
        Chat.fails = None
        self.assertEqual(self.notify(one), [1])
        self.assertEqual(self.notify(notify_pb2.Notification(notification_id="n4", expires_us=1)), [4])


class Begins(guidon.Matcher):
    def operators(self) -> list[guidon.Operator]:
        return [guidon.Operator("text/begins", value_schema={"type": "string", "minLength": 1})]

    def compile(self, operator: str, value: Any) -> guidon.Match:
        return lambda given: given.value.startswith(value)


class Matchers(unittest.TestCase):
    def setUp(self) -> None:
        server = Server(guidon.Plugin("acme/x", "1.0.0", matcher=Begins))
        server.configure(plugin_pb2.ConfigureRequest(instance_id="i", generation=1), call)
        self.service = MatcherService(server)
        self.assertTrue(self.service.open(match_pb2.OpenRequest(instance_id="i"), call).opened)

    def match(self, value: Any, *properties: Any) -> match_pb2.MatchBatchResponse:
        raw = b"" if value is None else json.dumps(value).encode()
        program = match_pb2.Program(program_id=raw or b"?", operator_id="text/begins", value_json=raw)
        n = len(properties)
        return self.service.match(
            match_pb2.MatchBatchRequest(
                instance_id="i",
                programs=[program],
                values=[json.dumps(p).encode() for p in properties],
                pair_program=[0] * n,
                pair_value=list(range(n)),
            ),
            call,
        )

    def test_verdicts(self) -> None:
        out = self.match("a", "abc", "bcd", 7)
        self.assertEqual(list(out.verdicts), [2, 1, 3])
        self.assertEqual(out.errors[0].pair, 2)
        self.assertEqual(list(self.match(None, "abc").need_programs), [0])

    def test_values_are_held_against_the_schema(self) -> None:
        programs = [match_pb2.Program(operator_id="text/begins", value_json=v) for v in (b'"a"', b'""', b"1", b"{")]
        out = self.service.compile(match_pb2.CompileRequest(instance_id="i", programs=programs), call)
        self.assertEqual([r.compiled for r in out.results], [True, False, False, False])
        self.assertTrue(all(r.diagnostics for r in out.results[1:]))


class Locks(unittest.TestCase):
    def test_alone_waits_and_gives_up(self) -> None:
        lock = SharedLock()
        inside, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with lock.shared():
                inside.set()
                leave.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait(10)
        with self.assertRaises(guidon.Transient), lock.alone(0.01):
            self.fail("entered beside a call")
        with lock.shared():
            pass
        leave.set()
        thread.join(10)
        with lock.alone(10):
            pass


if __name__ == "__main__":
    unittest.main()

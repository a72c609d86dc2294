"""The services of the kinds: sinks, notifiers and matchers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Optional, Union

import grpc

from guidon_plugin._base import OpenRequest, overrides
from guidon_plugin._errors import (
    ConfigError,
    ConfigErrors,
    Internal,
    Permanent,
    PluginError,
    Source,
    Unsupported,
    ValueRefused,
    as_error,
    is_mistake,
    to_proto,
)
from guidon_plugin._instance import Instance, diagnostic, remaining
from guidon_plugin._log import for_instance
from guidon_plugin._matcher import Input, Match, Matcher, Operator, Program, Verdict, operator_to_proto
from guidon_plugin._notifier import Notifier, NotifyOutcome, NotifyResult, from_proto
from guidon_plugin._pb.guidon.match.v1 import match_pb2
from guidon_plugin._pb.guidon.notify.v1 import notify_pb2
from guidon_plugin._pb.guidon.sink.v1 import sink_pb2
from guidon_plugin._server import Handler, Server, service
from guidon_plugin._sink import (
    Batch,
    Commit,
    FlushReason,
    FlushRequest,
    Outcome,
    Sink,
    columns_error,
    properties_to_proto,
    time_of,
)

Context = grpc.ServicerContext


def failure(instance: str, error: Exception, doing: str) -> PluginError:
    """Return the error of the author's code; a mistake is logged with its traceback."""
    if is_mistake(error):
        for_instance(instance).error("%s failed", doing, exc_info=error)
    return as_error(error)


def sooner(context: Context) -> Optional[float]:
    """Return the seconds for the work, a little less than until the host's deadline."""
    left = remaining(context)
    return None if left is None else left - min(left / 10, 0.25)


class SinkService:
    """guidon.sink.v1.SinkService"""

    def __init__(self, server: Server) -> None:
        self._server = server

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        methods: dict[str, Handler] = {"Open": self.open, "WriteBatch": self.write, "Flush": self.flush}
        return service(sink_pb2.DESCRIPTOR.services_by_name["SinkService"], methods)

    def open(self, request: sink_pb2.OpenRequest, context: Context) -> sink_pb2.OpenResponse:
        out = sink_pb2.OpenResponse(opened=True)

        def connect(value: Sink) -> int:
            p = value.open(OpenRequest(request.instance_id, request.committed_through))
            if p.commit == Commit.ON_FLUSH and not overrides(type(value), "flush"):
                raise Internal("the sink commits on flush and has no method flush", code="no_flush")
            out.properties.CopyFrom(properties_to_proto(p))
            return p.max_in_flight

        try:
            self._server.instance(request.instance_id).open(remaining(context), connect)
        except Exception as error:
            return sink_pb2.OpenResponse(error=to_proto(failure(request.instance_id, error, "open")))
        return out

    def write(self, request: sink_pb2.WriteBatchRequest, context: Context) -> sink_pb2.WriteBatchResponse:
        wrong = columns_error(request)
        if wrong:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)
        try:
            self._server.begin()
        except PluginError as error:
            return _rejected(error)
        try:
            batch = Batch(request)
            with self._server.instance(request.instance_id).work(remaining(context)) as value:
                result = value.write(batch)
        except Exception as error:
            return _rejected(failure(request.instance_id, error, "write"))
        finally:
            self._server.end()
        if result is None:
            return _rejected(Internal("write returned None: return batch.committed()", code="no_result"))
        through = result.committed_through
        if result.outcome in (Outcome.COMMITTED, Outcome.PARTIAL) and through == 0:
            through = batch.last_seq
        return sink_pb2.WriteBatchResponse(
            outcome=int(result.outcome),  # type: ignore[arg-type]
            committed_through=through,
            failures=[sink_pb2.RecordFailure(index=f.index, error=to_proto(f.error)) for f in result.failures],
            staged_events=result.staged_events,
            staged_bytes=result.staged_bytes,
            duplicates=result.duplicates,
        )

    def flush(self, request: sink_pb2.FlushRequest, context: Context) -> sink_pb2.FlushResponse:
        try:
            reason = FlushReason(request.reason) if request.reason <= FlushReason.MANUAL else FlushReason.UNSPECIFIED
            with self._server.instance(request.instance_id).work(remaining(context)) as value:
                result = value.flush(FlushRequest(reason, request.up_to_seq))
        except Exception as error:
            return sink_pb2.FlushResponse(error=to_proto(failure(request.instance_id, error, "flush")))
        return sink_pb2.FlushResponse(
            flushed=result.committed_through >= request.up_to_seq,
            committed_through=result.committed_through,
            failures=[sink_pb2.StagedFailure(seq=f.seq, error=to_proto(f.error)) for f in result.failures],
        )


def _rejected(error: PluginError) -> sink_pb2.WriteBatchResponse:
    return sink_pb2.WriteBatchResponse(outcome=sink_pb2.WriteBatchResponse.OUTCOME_REJECTED, error=to_proto(error))


class NotifierService:
    """guidon.notify.v1.NotifierService"""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._pool = ThreadPoolExecutor(64, "notify")

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        methods: dict[str, Handler] = {"Open": self.open, "Notify": self.notify, "Preview": self.preview}
        return service(notify_pb2.DESCRIPTOR.services_by_name["NotifierService"], methods)

    def open(self, request: notify_pb2.OpenRequest, context: Context) -> notify_pb2.OpenResponse:
        out = notify_pb2.OpenResponse(opened=True)

        def connect(value: Notifier) -> int:
            p = value.open(OpenRequest(request.instance_id))
            one.sent.window = max(0.0, p.dedup_window.total_seconds())
            out.properties.CopyFrom(
                notify_pb2.NotifierProperties(
                    max_items=p.max_items,
                    max_in_flight=max(1, p.max_in_flight),
                    per_second=max(0, p.per_second),
                    burst=p.burst,
                    per_destination=p.per_destination,
                    max_text_bytes=p.max_text_bytes,
                    formats=list(p.formats),
                )
            )
            out.properties.dedup_window.FromTimedelta(max(timedelta(0), p.dedup_window))
            return p.max_in_flight

        try:
            one = self._server.instance(request.instance_id)
            one.open(remaining(context), connect)
        except Exception as error:
            return notify_pb2.OpenResponse(error=to_proto(failure(request.instance_id, error, "open")))
        return out

    def notify(self, request: notify_pb2.NotifyRequest, context: Context) -> notify_pb2.NotifyResponse:
        try:
            self._server.begin()
        except PluginError as error:
            return notify_pb2.NotifyResponse(error=to_proto(error))
        limit = sooner(context)
        end = None if limit is None else time.monotonic() + limit
        try:
            one = self._server.instance(request.instance_id)
            with one.opened() as value:
                turns = [self._pool.submit(self._one, one, value, item, end) for item in request.items]
                results = [turn.result() for turn in turns]
        except Exception as error:
            return notify_pb2.NotifyResponse(error=to_proto(failure(request.instance_id, error, "notify")))
        finally:
            self._server.end()
        return notify_pb2.NotifyResponse(results=[_result_to_proto(r) for r in results])

    def _one(self, one: Instance, value: Notifier, item: notify_pb2.Notification, end: Optional[float]) -> NotifyResult:
        try:
            n = from_proto(item)
        except (ValueError, RecursionError) as error:
            return _gave_up(Permanent(f"decode the event: {error}", source=Source.PLUGIN))
        left = None if end is None else max(0.0, end - time.monotonic())
        try:
            with one.slot(left):
                if n.expires_at is not None and time.time() >= n.expires_at.timestamp():
                    return _gave_up(Permanent("it came too late", code="expired", source=Source.PLUGIN))
                before = one.sent.begin(n.id, left)
                if before is not None:
                    return before
                result = None
                try:
                    result = value.notify(n)
                finally:
                    one.sent.end(n.id, result)
        except Exception as error:
            e = failure(one.id, error, "notify")
            if isinstance(e, ConfigError) and n.destination:
                e = Permanent(e.message, code=e.code, source=e.source)
            return _gave_up(e)
        return NotifyResult() if result is None else result

    def preview(self, request: notify_pb2.PreviewRequest, context: Context) -> notify_pb2.PreviewResponse:
        try:
            with self._server.instance(request.instance_id).work(remaining(context)) as value:
                if not overrides(type(value), "preview"):
                    raise Unsupported("the plugin shows no preview", code="no_preview")
                p = value.preview(from_proto(request.item))
        except Exception as error:
            return notify_pb2.PreviewResponse(error=to_proto(failure(request.instance_id, error, "preview")))
        return notify_pb2.PreviewResponse(
            rendered=True, body=p.rendered, media_type=p.media_type, warnings=list(p.warnings)
        )


def _gave_up(error: PluginError) -> NotifyResult:
    dropped = isinstance(error, (Permanent, Unsupported))
    return NotifyResult(NotifyOutcome.DROPPED if dropped else NotifyOutcome.RETRY, error=error)


def _result_to_proto(r: NotifyResult) -> notify_pb2.NotifyResult:
    out = notify_pb2.NotifyResult(
        outcome=int(r.outcome),  # type: ignore[arg-type]
        provider_message_id=r.message_id,
        error=to_proto(r.error),
    )
    if r.rate is not None:
        out.rate.remaining, out.rate.scope = max(0, r.rate.remaining), r.rate.scope
        out.rate.reset_after.FromTimedelta(max(timedelta(0), r.rate.reset_after))
    return out


_OPERATOR_ID = re.compile(r"[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*")

Compiled = Union[Match, PluginError]


class Programs:
    """The operators of an open matcher and the programs that it has compiled."""

    _MOST = 10_000

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._lock = threading.Lock()
        self._table: OrderedDict[bytes, Compiled] = OrderedDict()
        self.operators: dict[str, Operator] = {}
        self._schemas: dict[str, Any] = {}
        for o in matcher.operators():
            if not _OPERATOR_ID.fullmatch(o.id):
                raise Internal(f"operator {o.id!r}: want two lower-case words with a slash between them")
            if o.id in self.operators:
                raise Internal(f"operator {o.id!r} is there twice")
            self.operators[o.id] = o
            if o.value_schema is not None:
                from jsonschema import Draft202012Validator

                Draft202012Validator.check_schema(o.value_schema)
                self._schemas[o.id] = Draft202012Validator(o.value_schema)

    def compile(self, p: match_pb2.Program) -> tuple[Match, tuple[str, ...]]:
        """Return the program of a value and what it reads; raise PluginError."""
        if p.operator_id not in self.operators:
            raise Unsupported(f"there is no operator {p.operator_id!r}", code="unknown_operator")
        try:
            value = json.loads(p.value_json)
        except (ValueError, RecursionError) as error:
            raise ValueRefused(f"not JSON: {error}") from None
        schema = self._schemas.get(p.operator_id)
        if schema is not None:
            wrong = [
                ValueRefused(e.message[:500], pointer="".join(f"/{part}" for part in e.absolute_path))
                for e in schema.iter_errors(value)
            ]
            if wrong:
                raise ConfigErrors(*wrong)
        program = self._matcher.compile(p.operator_id, value)
        if isinstance(program, Program):
            return program.match, tuple(program.reads)
        if not callable(program):
            raise Internal(f"operator {p.operator_id!r} made no program", code="no_program")
        return program, ()

    def keep(self, id: bytes, compiled: Compiled) -> None:  # noqa: A002
        with self._lock:
            self._table[id] = compiled
            self._table.move_to_end(id)
            if len(self._table) > self._MOST:
                self._table.popitem(last=False)

    def find(self, p: match_pb2.Program) -> Optional[Compiled]:
        """Return a program, compiled if needed; None means that its value is needed."""
        with self._lock:
            known = self._table.get(p.program_id)
            if known is not None:
                self._table.move_to_end(p.program_id)
                return known
        if not p.value_json:
            return None
        try:
            out: Compiled = self.compile(p)[0]
        except Exception as error:
            out = as_error(error)
        if not isinstance(out, PluginError) or isinstance(out, ConfigError):
            self.keep(p.program_id, out)
        return out


class MatcherService:
    """guidon.match.v1.MatcherService"""

    def __init__(self, server: Server) -> None:
        self._server = server

    def handlers(self) -> grpc.GenericRpcHandler[Any, Any]:
        methods: dict[str, Handler] = {
            "Open": self.open,
            "Describe": self.describe,
            "Compile": self.compile,
            "MatchBatch": self.match,
        }
        return service(match_pb2.DESCRIPTOR.services_by_name["MatcherService"], methods)

    def open(self, request: match_pb2.OpenRequest, context: Context) -> match_pb2.OpenResponse:
        out = match_pb2.OpenResponse(opened=True)

        def connect(value: Matcher) -> int:
            p = value.open(OpenRequest(request.instance_id))
            one.extra = Programs(value)
            out.properties.max_in_flight = max(1, p.max_in_flight)
            return p.max_in_flight

        try:
            one = self._server.instance(request.instance_id)
            one.open(remaining(context), connect)
        except Exception as error:
            return match_pb2.OpenResponse(error=to_proto(failure(request.instance_id, error, "open")))
        return out

    def describe(self, request: match_pb2.DescribeRequest, context: Context) -> match_pb2.DescribeResponse:
        try:
            one = self._server.instance(request.instance_id)
            with one.opened() as value:
                return match_pb2.DescribeResponse(
                    described=True,
                    operators=[operator_to_proto(o) for o in one.extra.operators.values()],
                    data_version=value.data_version(),
                )
        except Exception as error:
            return match_pb2.DescribeResponse(error=to_proto(failure(request.instance_id, error, "describe")))

    def compile(self, request: match_pb2.CompileRequest, context: Context) -> match_pb2.CompileResponse:
        out = match_pb2.CompileResponse()
        try:
            one = self._server.instance(request.instance_id)
            with one.work(remaining(context)):
                for p in request.programs:
                    out.results.append(self._compile(one, p))
        except Exception as error:
            return match_pb2.CompileResponse(error=to_proto(failure(request.instance_id, error, "compile")))
        return out

    @staticmethod
    def _compile(one: Instance, p: match_pb2.Program) -> match_pb2.CompileResult:
        try:
            match, reads = one.extra.compile(p)
        except ConfigErrors as error:
            return match_pb2.CompileResult(diagnostics=[diagnostic(e) for e in error.errors])
        except Exception as error:
            return match_pb2.CompileResult(diagnostics=[diagnostic(failure(one.id, error, "compile"))])
        if p.program_id:
            one.extra.keep(p.program_id, match)
        cost = one.extra.operators[p.operator_id].cost
        return match_pb2.CompileResult(compiled=True, reads=reads, cost_ns=int(cost.total_seconds() * 1e9))

    def match(self, request: match_pb2.MatchBatchRequest, context: Context) -> match_pb2.MatchBatchResponse:
        pairs = len(request.pair_program)
        if pairs != len(request.pair_value):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "columns of different lengths")
        if pairs and (
            max(request.pair_program) >= len(request.programs) or max(request.pair_value) >= len(request.values)
        ):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "index out of range")
        limit = sooner(context)
        end = None if limit is None else time.monotonic() + limit
        try:
            self._server.begin()
        except PluginError as error:
            return match_pb2.MatchBatchResponse(error=to_proto(error))
        try:
            one = self._server.instance(request.instance_id)
            with one.work(limit) as value:
                out = match_pb2.MatchBatchResponse(data_version=value.data_version())
                _judge(one, request, out, end)
                return out
        except Exception as error:
            return match_pb2.MatchBatchResponse(error=to_proto(failure(request.instance_id, error, "match")))
        finally:
            self._server.end()


def _judge(
    one: Instance, request: match_pb2.MatchBatchRequest, out: match_pb2.MatchBatchResponse, end: Optional[float]
) -> None:
    """Evaluate the pairs in order until the deadline; the remaining ones stay unknown."""
    programs = [one.extra.find(p) for p in request.programs]
    out.need_programs.extend(i for i, p in enumerate(programs) if p is None)
    now = time_of(request.now_us)
    inputs = [Input(raw, now) for raw in request.values]
    verdicts = bytearray(len(request.pair_program))
    told: set[int] = set()
    for i, (at, where) in enumerate(zip(request.pair_program, request.pair_value)):
        if end is not None and i % 16 == 0 and time.monotonic() >= end:
            break
        program = programs[at]
        if program is None:
            continue
        error: Optional[PluginError] = None
        if isinstance(program, PluginError):
            error = program
        else:
            try:
                verdict = program(inputs[where])
                if isinstance(verdict, bool):
                    verdict = Verdict.MATCH if verdict else Verdict.NO_MATCH
                verdicts[i] = verdict if Verdict.UNKNOWN < verdict <= Verdict.FAILED else Verdict.UNKNOWN
            except Exception as raised:
                error = as_error(raised)
        if error is not None:
            verdicts[i] = Verdict.FAILED
            if at not in told and len(told) < 100:
                told.add(at)
                out.errors.add(pair=i, error=to_proto(error))
    out.verdicts = bytes(verdicts)


def kind_services(server: Server) -> list[grpc.GenericRpcHandler[Any, Any]]:
    """Return the handlers of the kinds that a plugin offers."""
    out = []
    if server.plugin.sink is not None:
        out.append(SinkService(server).handlers())
    if server.plugin.notifier is not None:
        out.append(NotifierService(server).handlers())
    if server.plugin.matcher is not None:
        out.append(MatcherService(server).handlers())
    return out

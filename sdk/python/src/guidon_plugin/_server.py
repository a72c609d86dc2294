"""The services that every plugin has: its life and that of its instances."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable

import grpc
from google.protobuf import message_factory

from guidon_plugin import _config, _log
from guidon_plugin._base import Base
from guidon_plugin._errors import Internal, NotConnected, PluginError, Source, Transient, to_proto
from guidon_plugin._instance import Instance, remaining
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2
from guidon_plugin._plugin import Plugin

PROTOCOL_MINOR = 1
MAX_MESSAGE_BYTES = 64 << 20
VERSION = "0.1.0"


class Server:
    """Keeps the instances and answers the calls about them."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.drained = threading.Event()  # set by the first Drain
        self.shut_down = threading.Event()  # set by Shutdown
        self._turn = threading.Condition()
        self._instances: dict[str, Instance] = {}
        self._draining = False
        self._pending = 0

    # What the services of the kinds use.

    def instance(self, id: str) -> Instance:  # noqa: A002
        """Return an instance that was configured, or raise."""
        with self._turn:
            found = self._instances.get(id)
        if found is None:
            raise NotConnected(
                f"instance {id!r} was not configured here", code="unknown_instance", source=Source.PLUGIN
            )
        return found

    def begin(self) -> None:
        """Count a piece of work in; raise when the process is draining."""
        with self._turn:
            if self._draining:
                raise Transient("the plugin is stopping", code="draining", source=Source.PLUGIN)
            self._pending += 1

    def end(self) -> None:
        """Count a piece of work out."""
        with self._turn:
            self._pending -= 1
            self._turn.notify_all()

    # guidon.plugin.v1.PluginService

    def info(self, request: plugin_pb2.InfoRequest, context: grpc.ServicerContext) -> plugin_pb2.InfoResponse:
        p = self.plugin
        return plugin_pb2.InfoResponse(
            name=p.name,
            version=p.version,
            summary=p.summary,
            kinds=list(p.kinds()),  # type: ignore[arg-type]
            protocol_minor=PROTOCOL_MINOR,
            features=p.features(),
            sdk=f"guidon-python/{VERSION}",
            max_message_bytes=MAX_MESSAGE_BYTES,
            multi_instance=not p.single_instance,
            exclusive=p.exclusive,
        )

    def _class(self, kind: int, context: grpc.ServicerContext) -> tuple[int, type[Base]]:
        try:
            return self.plugin.kind(kind)
        except PluginError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    def config_schema(
        self, request: plugin_pb2.ConfigSchemaRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ConfigSchemaResponse:
        config = _config.config_class(self._class(request.kind, context)[1])
        return plugin_pb2.ConfigSchemaResponse(
            json_schema=json.dumps(_config.schema(config)).encode(),
            secret_pointers=_config.secret_pointers(config),
            defaults_json=json.dumps(_config.defaults(config)).encode(),
        )

    def validate(
        self, request: plugin_pb2.ValidateRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ValidateResponse:
        kind, cls = self._class(request.kind, context)
        _, problems = Instance(request.instance_id, kind, cls).build(request.config)
        return plugin_pb2.ValidateResponse(diagnostics=problems, valid=not problems)

    def configure(
        self, request: plugin_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ConfigureResponse:
        if not request.instance_id:
            error = Internal("no instance was named", code="no_instance")
            return plugin_pb2.ConfigureResponse(error=to_proto(error))
        try:
            kind, cls = self.plugin.kind(request.kind)
            with self._turn:
                one = self._instances.get(request.instance_id)
            if one is None:
                one = Instance(request.instance_id, kind, cls)
            else:
                refused = one.refuses(request)
                if refused is not None:
                    raise refused
            problems = one.build(request.config)[1]
            if problems:
                return plugin_pb2.ConfigureResponse(diagnostics=problems)
            one.reconfigure(request, remaining(context))
        except Exception as error:
            return plugin_pb2.ConfigureResponse(error=to_proto(error))
        with self._turn:
            self._instances[request.instance_id] = one
        return plugin_pb2.ConfigureResponse(accepted=True)

    def check(self, request: plugin_pb2.CheckRequest, context: grpc.ServicerContext) -> plugin_pb2.CheckResponse:
        begin = time.monotonic()
        out = plugin_pb2.CheckResponse(ok=True)
        try:
            with self.instance(request.instance_id).work(remaining(context)) as value:
                value.check()
        except Exception as error:
            out = plugin_pb2.CheckResponse(error=to_proto(error))
        out.latency.FromMicroseconds(int((time.monotonic() - begin) * 1_000_000))
        return out

    def health(self, request: plugin_pb2.HealthRequest, context: grpc.ServicerContext) -> plugin_pb2.HealthResponse:
        with self._turn:
            draining = self._draining
            ids = list(request.instance_ids) or list(self._instances)
            instances = [self._instances[i] for i in ids if i in self._instances]
        return plugin_pb2.HealthResponse(serving=not draining, instances=[i.health(draining) for i in instances])

    def drain(self, request: plugin_pb2.DrainRequest, context: grpc.ServicerContext) -> plugin_pb2.DrainResponse:
        self.drained.set()
        limits = [remaining(context), request.deadline.ToTimedelta().total_seconds() or None]
        known = [limit for limit in limits if limit is not None]
        with self._turn:
            self._draining = True
            self._turn.wait_for(lambda: self._pending == 0, min(known) if known else None)
            return plugin_pb2.DrainResponse(drained=self._pending == 0, pending=self._pending)

    def close(self, request: plugin_pb2.CloseRequest, context: grpc.ServicerContext) -> plugin_pb2.CloseResponse:
        with self._turn:
            one = self._instances.get(request.instance_id)
        if one is None:
            return plugin_pb2.CloseResponse(closed=True)
        try:
            one.close(remaining(context))
        except PluginError as error:
            return plugin_pb2.CloseResponse(error=to_proto(error))
        with self._turn:
            if self._instances.get(one.id) is one:
                del self._instances[one.id]
        return plugin_pb2.CloseResponse(closed=True)

    def metrics(self, request: plugin_pb2.MetricsRequest, context: grpc.ServicerContext) -> plugin_pb2.MetricsResponse:
        with self._turn:
            ids = list(request.instance_ids) or sorted(self._instances)
            instances = [self._instances[i] for i in ids if i in self._instances]
        out = plugin_pb2.MetricsResponse(collected=True)
        for one in instances:
            try:
                text = one.metrics()
            except Exception as error:
                _log.for_instance(one.id).debug("no metrics: %s", error)
                out.collected = False
                continue
            if text:
                out.instances.add(instance_id=one.id, openmetrics=text.encode())
        return out

    def set_log_level(
        self, request: plugin_pb2.SetLogLevelRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.SetLogLevelResponse:
        if not _log.set_level(request.level):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown level {request.level!r}")
        return plugin_pb2.SetLogLevelResponse(set=True)

    # The end of the process.

    def close_all(self, grace: float) -> None:
        """Release every instance, for at most ``grace`` seconds."""
        with self._turn:
            self._draining = True
            instances = list(self._instances.values())
        end = time.monotonic() + grace

        def close() -> None:
            for one in instances:
                try:
                    one.close(max(0.0, end - time.monotonic()))
                except PluginError as error:
                    _log.for_instance(one.id).warning("close failed: %s", error)

        thread = threading.Thread(target=close, daemon=True)
        thread.start()
        thread.join(grace)


Handler = Callable[[Any, grpc.ServicerContext], Any]


def service(descriptor: Any, methods: dict[str, Handler]) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the handlers of a service by the names of its methods."""
    handlers = {}
    for name, handler in methods.items():
        method = descriptor.methods_by_name[name]
        request = message_factory.GetMessageClass(method.input_type)
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            _guarded(name, handler),
            request_deserializer=request.FromString,
            response_serializer=lambda m: m.SerializeToString(),
        )
    return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)


def _guarded(name: str, handler: Handler) -> Handler:
    """Log an exception that no handler expected; gRPC answers it with UNKNOWN."""

    def call(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return handler(request, context)
        except Exception:
            if context.code() is None:  # type: ignore[attr-defined]
                _log.logger.exception("%s failed", name)
            raise

    return call


def plugin_service(server: Server) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the handlers of PluginService."""
    return service(
        plugin_pb2.DESCRIPTOR.services_by_name["PluginService"],
        {
            "Info": server.info,
            "ConfigSchema": server.config_schema,
            "Validate": server.validate,
            "Configure": server.configure,
            "Check": server.check,
            "Health": server.health,
            "Drain": server.drain,
            "Close": server.close,
            "Metrics": server.metrics,
            "SetLogLevel": server.set_log_level,
        },
    )

import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_SINK: _ClassVar[Kind]
    KIND_NOTIFIER: _ClassVar[Kind]
    KIND_MATCHER: _ClassVar[Kind]
KIND_UNSPECIFIED: Kind
KIND_SINK: Kind
KIND_NOTIFIER: Kind
KIND_MATCHER: Kind

class InfoRequest(_message.Message):
    __slots__ = ("host_name", "host_version", "protocol_minor", "features")
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    host_name: str
    host_version: str
    protocol_minor: int
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host_name: _Optional[str] = ..., host_version: _Optional[str] = ..., protocol_minor: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...

class InfoResponse(_message.Message):
    __slots__ = ("name", "version", "kinds", "protocol_minor", "features", "sdk", "max_message_bytes", "multi_instance", "exclusive", "deprecations", "summary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MULTI_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    DEPRECATIONS_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    kinds: _containers.RepeatedScalarFieldContainer[Kind]
    protocol_minor: int
    features: _containers.RepeatedScalarFieldContainer[str]
    sdk: str
    max_message_bytes: int
    multi_instance: bool
    exclusive: bool
    deprecations: _containers.RepeatedScalarFieldContainer[str]
    summary: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[Kind, str]]] = ..., protocol_minor: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., sdk: _Optional[str] = ..., max_message_bytes: _Optional[int] = ..., multi_instance: bool = ..., exclusive: bool = ..., deprecations: _Optional[_Iterable[str]] = ..., summary: _Optional[str] = ...) -> None: ...

class ConfigSchemaRequest(_message.Message):
    __slots__ = ("kind",)
    KIND_FIELD_NUMBER: _ClassVar[int]
    kind: Kind
    def __init__(self, kind: _Optional[_Union[Kind, str]] = ...) -> None: ...

class ConfigSchemaResponse(_message.Message):
    __slots__ = ("json_schema", "secret_pointers", "defaults_json")
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SECRET_POINTERS_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_JSON_FIELD_NUMBER: _ClassVar[int]
    json_schema: bytes
    secret_pointers: _containers.RepeatedScalarFieldContainer[str]
    defaults_json: bytes
    def __init__(self, json_schema: _Optional[bytes] = ..., secret_pointers: _Optional[_Iterable[str]] = ..., defaults_json: _Optional[bytes] = ...) -> None: ...

class Config(_message.Message):
    __slots__ = ("config_json", "secrets")
    class SecretsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    config_json: bytes
    secrets: _containers.ScalarMap[str, bytes]
    def __init__(self, config_json: _Optional[bytes] = ..., secrets: _Optional[_Mapping[str, bytes]] = ...) -> None: ...

class ValidateRequest(_message.Message):
    __slots__ = ("instance_id", "config", "kind")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    config: Config
    kind: Kind
    def __init__(self, instance_id: _Optional[str] = ..., config: _Optional[_Union[Config, _Mapping]] = ..., kind: _Optional[_Union[Kind, str]] = ...) -> None: ...

class ValidateResponse(_message.Message):
    __slots__ = ("diagnostics", "valid")
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    VALID_FIELD_NUMBER: _ClassVar[int]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    valid: bool
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., valid: bool = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("instance_id", "generation", "config", "kind")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    generation: int
    config: Config
    kind: Kind
    def __init__(self, instance_id: _Optional[str] = ..., generation: _Optional[int] = ..., config: _Optional[_Union[Config, _Mapping]] = ..., kind: _Optional[_Union[Kind, str]] = ...) -> None: ...

class ConfigureResponse(_message.Message):
    __slots__ = ("diagnostics", "accepted", "error")
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    accepted: bool
    error: Error
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., accepted: bool = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Diagnostic(_message.Message):
    __slots__ = ("severity", "pointer", "summary", "detail", "doc_url")
    class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SEVERITY_UNSPECIFIED: _ClassVar[Diagnostic.Severity]
        SEVERITY_ERROR: _ClassVar[Diagnostic.Severity]
        SEVERITY_WARNING: _ClassVar[Diagnostic.Severity]
        SEVERITY_INFO: _ClassVar[Diagnostic.Severity]
    SEVERITY_UNSPECIFIED: Diagnostic.Severity
    SEVERITY_ERROR: Diagnostic.Severity
    SEVERITY_WARNING: Diagnostic.Severity
    SEVERITY_INFO: Diagnostic.Severity
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DOC_URL_FIELD_NUMBER: _ClassVar[int]
    severity: Diagnostic.Severity
    pointer: str
    summary: str
    detail: str
    doc_url: str
    def __init__(self, severity: _Optional[_Union[Diagnostic.Severity, str]] = ..., pointer: _Optional[str] = ..., summary: _Optional[str] = ..., detail: _Optional[str] = ..., doc_url: _Optional[str] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("instance_id",)
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    def __init__(self, instance_id: _Optional[str] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ("ok", "error", "latency")
    OK_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    error: Error
    latency: _duration_pb2.Duration
    def __init__(self, ok: bool = ..., error: _Optional[_Union[Error, _Mapping]] = ..., latency: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ("instance_ids",)
    INSTANCE_IDS_FIELD_NUMBER: _ClassVar[int]
    instance_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, instance_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("instances", "serving")
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedCompositeFieldContainer[InstanceHealth]
    serving: bool
    def __init__(self, instances: _Optional[_Iterable[_Union[InstanceHealth, _Mapping]]] = ..., serving: bool = ...) -> None: ...

class InstanceHealth(_message.Message):
    __slots__ = ("instance_id", "status", "error", "since_us", "details", "generation")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[InstanceHealth.Status]
        STATUS_STARTING: _ClassVar[InstanceHealth.Status]
        STATUS_READY: _ClassVar[InstanceHealth.Status]
        STATUS_DEGRADED: _ClassVar[InstanceHealth.Status]
        STATUS_FAILED: _ClassVar[InstanceHealth.Status]
        STATUS_DRAINING: _ClassVar[InstanceHealth.Status]
    STATUS_UNSPECIFIED: InstanceHealth.Status
    STATUS_STARTING: InstanceHealth.Status
    STATUS_READY: InstanceHealth.Status
    STATUS_DEGRADED: InstanceHealth.Status
    STATUS_FAILED: InstanceHealth.Status
    STATUS_DRAINING: InstanceHealth.Status
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SINCE_US_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    status: InstanceHealth.Status
    error: Error
    since_us: int
    details: _containers.ScalarMap[str, str]
    generation: int
    def __init__(self, instance_id: _Optional[str] = ..., status: _Optional[_Union[InstanceHealth.Status, str]] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., since_us: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ..., generation: _Optional[int] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("deadline",)
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    deadline: _duration_pb2.Duration
    def __init__(self, deadline: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ("drained", "pending")
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    drained: bool
    pending: int
    def __init__(self, drained: bool = ..., pending: _Optional[int] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("instance_id",)
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    def __init__(self, instance_id: _Optional[str] = ...) -> None: ...

class CloseResponse(_message.Message):
    __slots__ = ("closed", "error")
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    closed: bool
    error: Error
    def __init__(self, closed: bool = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class MetricsRequest(_message.Message):
    __slots__ = ("instance_ids",)
    INSTANCE_IDS_FIELD_NUMBER: _ClassVar[int]
    instance_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, instance_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class MetricsResponse(_message.Message):
    __slots__ = ("instances", "collected")
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedCompositeFieldContainer[InstanceMetrics]
    collected: bool
    def __init__(self, instances: _Optional[_Iterable[_Union[InstanceMetrics, _Mapping]]] = ..., collected: bool = ...) -> None: ...

class InstanceMetrics(_message.Message):
    __slots__ = ("instance_id", "openmetrics")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    OPENMETRICS_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    openmetrics: bytes
    def __init__(self, instance_id: _Optional[str] = ..., openmetrics: _Optional[bytes] = ...) -> None: ...

class SetLogLevelRequest(_message.Message):
    __slots__ = ("level",)
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    level: str
    def __init__(self, level: _Optional[str] = ...) -> None: ...

class SetLogLevelResponse(_message.Message):
    __slots__ = ("set",)
    SET_FIELD_NUMBER: _ClassVar[int]
    set: bool
    def __init__(self, set: bool = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "retry_after", "source", "details", "pointer")
    class Class(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CLASS_UNSPECIFIED: _ClassVar[Error.Class]
        CLASS_TRANSIENT: _ClassVar[Error.Class]
        CLASS_THROTTLED: _ClassVar[Error.Class]
        CLASS_PERMANENT: _ClassVar[Error.Class]
        CLASS_NOT_CONNECTED: _ClassVar[Error.Class]
        CLASS_CONFIG: _ClassVar[Error.Class]
        CLASS_UNSUPPORTED: _ClassVar[Error.Class]
        CLASS_INTERNAL: _ClassVar[Error.Class]
    CLASS_UNSPECIFIED: Error.Class
    CLASS_TRANSIENT: Error.Class
    CLASS_THROTTLED: Error.Class
    CLASS_PERMANENT: Error.Class
    CLASS_NOT_CONNECTED: Error.Class
    CLASS_CONFIG: Error.Class
    CLASS_UNSUPPORTED: Error.Class
    CLASS_INTERNAL: Error.Class
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SOURCE_UNSPECIFIED: _ClassVar[Error.Source]
        SOURCE_PLUGIN: _ClassVar[Error.Source]
        SOURCE_DOWNSTREAM: _ClassVar[Error.Source]
    SOURCE_UNSPECIFIED: Error.Source
    SOURCE_PLUGIN: Error.Source
    SOURCE_DOWNSTREAM: Error.Source
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLASS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retry_after: _duration_pb2.Duration
    source: Error.Source
    details: _containers.ScalarMap[str, str]
    pointer: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., source: _Optional[_Union[Error.Source, str]] = ..., details: _Optional[_Mapping[str, str]] = ..., pointer: _Optional[str] = ..., **kwargs) -> None: ...

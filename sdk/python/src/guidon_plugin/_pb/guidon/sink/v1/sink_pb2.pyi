import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2 as _plugin_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenRequest(_message.Message):
    __slots__ = ("instance_id", "committed_through")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    committed_through: int
    def __init__(self, instance_id: _Optional[str] = ..., committed_through: _Optional[int] = ...) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ("opened", "error", "properties")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    opened: bool
    error: _plugin_pb2.Error
    properties: SinkProperties
    def __init__(self, opened: bool = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., properties: _Optional[_Union[SinkProperties, _Mapping]] = ...) -> None: ...

class SinkProperties(_message.Message):
    __slots__ = ("max_in_flight", "max_events", "max_bytes", "linger", "ordering", "dedup", "commit", "durability", "max_staged_events", "max_staged_bytes", "max_staged_age", "accepts", "features")
    class Ordering(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ORDERING_UNSPECIFIED: _ClassVar[SinkProperties.Ordering]
        ORDERING_NONE: _ClassVar[SinkProperties.Ordering]
        ORDERING_PER_KEY: _ClassVar[SinkProperties.Ordering]
        ORDERING_TOTAL: _ClassVar[SinkProperties.Ordering]
    ORDERING_UNSPECIFIED: SinkProperties.Ordering
    ORDERING_NONE: SinkProperties.Ordering
    ORDERING_PER_KEY: SinkProperties.Ordering
    ORDERING_TOTAL: SinkProperties.Ordering
    class Dedup(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DEDUP_UNSPECIFIED: _ClassVar[SinkProperties.Dedup]
        DEDUP_NONE: _ClassVar[SinkProperties.Dedup]
        DEDUP_BY_BATCH_ID: _ClassVar[SinkProperties.Dedup]
        DEDUP_BY_EVENT_ID: _ClassVar[SinkProperties.Dedup]
    DEDUP_UNSPECIFIED: SinkProperties.Dedup
    DEDUP_NONE: SinkProperties.Dedup
    DEDUP_BY_BATCH_ID: SinkProperties.Dedup
    DEDUP_BY_EVENT_ID: SinkProperties.Dedup
    class Commit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        COMMIT_UNSPECIFIED: _ClassVar[SinkProperties.Commit]
        COMMIT_IMMEDIATE: _ClassVar[SinkProperties.Commit]
        COMMIT_ON_FLUSH: _ClassVar[SinkProperties.Commit]
    COMMIT_UNSPECIFIED: SinkProperties.Commit
    COMMIT_IMMEDIATE: SinkProperties.Commit
    COMMIT_ON_FLUSH: SinkProperties.Commit
    class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DURABILITY_UNSPECIFIED: _ClassVar[SinkProperties.Durability]
        DURABILITY_MEMORY: _ClassVar[SinkProperties.Durability]
        DURABILITY_LOCAL_DISK: _ClassVar[SinkProperties.Durability]
        DURABILITY_REPLICATED: _ClassVar[SinkProperties.Durability]
    DURABILITY_UNSPECIFIED: SinkProperties.Durability
    DURABILITY_MEMORY: SinkProperties.Durability
    DURABILITY_LOCAL_DISK: SinkProperties.Durability
    DURABILITY_REPLICATED: SinkProperties.Durability
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_EVENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    LINGER_FIELD_NUMBER: _ClassVar[int]
    ORDERING_FIELD_NUMBER: _ClassVar[int]
    DEDUP_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    MAX_STAGED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_STAGED_AGE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    max_in_flight: int
    max_events: int
    max_bytes: int
    linger: _duration_pb2.Duration
    ordering: SinkProperties.Ordering
    dedup: SinkProperties.Dedup
    commit: SinkProperties.Commit
    durability: SinkProperties.Durability
    max_staged_events: int
    max_staged_bytes: int
    max_staged_age: _duration_pb2.Duration
    accepts: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_in_flight: _Optional[int] = ..., max_events: _Optional[int] = ..., max_bytes: _Optional[int] = ..., linger: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ordering: _Optional[_Union[SinkProperties.Ordering, str]] = ..., dedup: _Optional[_Union[SinkProperties.Dedup, str]] = ..., commit: _Optional[_Union[SinkProperties.Commit, str]] = ..., durability: _Optional[_Union[SinkProperties.Durability, str]] = ..., max_staged_events: _Optional[int] = ..., max_staged_bytes: _Optional[int] = ..., max_staged_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., accepts: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...

class RecordBatch(_message.Message):
    __slots__ = ("ids", "json", "received_us", "project_index", "projects")
    IDS_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_US_FIELD_NUMBER: _ClassVar[int]
    PROJECT_INDEX_FIELD_NUMBER: _ClassVar[int]
    PROJECTS_FIELD_NUMBER: _ClassVar[int]
    ids: bytes
    json: _containers.RepeatedScalarFieldContainer[bytes]
    received_us: _containers.RepeatedScalarFieldContainer[int]
    project_index: _containers.RepeatedScalarFieldContainer[int]
    projects: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[bytes] = ..., json: _Optional[_Iterable[bytes]] = ..., received_us: _Optional[_Iterable[int]] = ..., project_index: _Optional[_Iterable[int]] = ..., projects: _Optional[_Iterable[int]] = ...) -> None: ...

class WriteBatchRequest(_message.Message):
    __slots__ = ("instance_id", "generation", "batch_id", "attempt", "first_seq", "last_seq", "records")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    generation: int
    batch_id: str
    attempt: int
    first_seq: int
    last_seq: int
    records: RecordBatch
    def __init__(self, instance_id: _Optional[str] = ..., generation: _Optional[int] = ..., batch_id: _Optional[str] = ..., attempt: _Optional[int] = ..., first_seq: _Optional[int] = ..., last_seq: _Optional[int] = ..., records: _Optional[_Union[RecordBatch, _Mapping]] = ...) -> None: ...

class WriteBatchResponse(_message.Message):
    __slots__ = ("outcome", "committed_through", "failures", "error", "staged_events", "staged_bytes", "duplicates")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[WriteBatchResponse.Outcome]
        OUTCOME_COMMITTED: _ClassVar[WriteBatchResponse.Outcome]
        OUTCOME_STAGED: _ClassVar[WriteBatchResponse.Outcome]
        OUTCOME_PARTIAL: _ClassVar[WriteBatchResponse.Outcome]
        OUTCOME_REJECTED: _ClassVar[WriteBatchResponse.Outcome]
    OUTCOME_UNSPECIFIED: WriteBatchResponse.Outcome
    OUTCOME_COMMITTED: WriteBatchResponse.Outcome
    OUTCOME_STAGED: WriteBatchResponse.Outcome
    OUTCOME_PARTIAL: WriteBatchResponse.Outcome
    OUTCOME_REJECTED: WriteBatchResponse.Outcome
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STAGED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    outcome: WriteBatchResponse.Outcome
    committed_through: int
    failures: _containers.RepeatedCompositeFieldContainer[RecordFailure]
    error: _plugin_pb2.Error
    staged_events: int
    staged_bytes: int
    duplicates: int
    def __init__(self, outcome: _Optional[_Union[WriteBatchResponse.Outcome, str]] = ..., committed_through: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[RecordFailure, _Mapping]]] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., staged_events: _Optional[int] = ..., staged_bytes: _Optional[int] = ..., duplicates: _Optional[int] = ...) -> None: ...

class RecordFailure(_message.Message):
    __slots__ = ("index", "error")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    index: int
    error: _plugin_pb2.Error
    def __init__(self, index: _Optional[int] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ("instance_id", "reason", "up_to_seq")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REASON_UNSPECIFIED: _ClassVar[FlushRequest.Reason]
        REASON_TIMER: _ClassVar[FlushRequest.Reason]
        REASON_SIZE: _ClassVar[FlushRequest.Reason]
        REASON_DRAIN: _ClassVar[FlushRequest.Reason]
        REASON_SHUTDOWN: _ClassVar[FlushRequest.Reason]
        REASON_MANUAL: _ClassVar[FlushRequest.Reason]
    REASON_UNSPECIFIED: FlushRequest.Reason
    REASON_TIMER: FlushRequest.Reason
    REASON_SIZE: FlushRequest.Reason
    REASON_DRAIN: FlushRequest.Reason
    REASON_SHUTDOWN: FlushRequest.Reason
    REASON_MANUAL: FlushRequest.Reason
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    UP_TO_SEQ_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    reason: FlushRequest.Reason
    up_to_seq: int
    def __init__(self, instance_id: _Optional[str] = ..., reason: _Optional[_Union[FlushRequest.Reason, str]] = ..., up_to_seq: _Optional[int] = ...) -> None: ...

class FlushResponse(_message.Message):
    __slots__ = ("error", "committed_through", "failures", "flushed")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_FIELD_NUMBER: _ClassVar[int]
    error: _plugin_pb2.Error
    committed_through: int
    failures: _containers.RepeatedCompositeFieldContainer[StagedFailure]
    flushed: bool
    def __init__(self, error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., committed_through: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[StagedFailure, _Mapping]]] = ..., flushed: bool = ...) -> None: ...

class StagedFailure(_message.Message):
    __slots__ = ("seq", "error")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    seq: int
    error: _plugin_pb2.Error
    def __init__(self, seq: _Optional[int] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

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

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_NO_MATCH: _ClassVar[Verdict]
    VERDICT_MATCH: _ClassVar[Verdict]
    VERDICT_FAILED: _ClassVar[Verdict]
VERDICT_UNSPECIFIED: Verdict
VERDICT_NO_MATCH: Verdict
VERDICT_MATCH: Verdict
VERDICT_FAILED: Verdict

class OpenRequest(_message.Message):
    __slots__ = ("instance_id",)
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    def __init__(self, instance_id: _Optional[str] = ...) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ("opened", "error", "properties")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    opened: bool
    error: _plugin_pb2.Error
    properties: MatcherProperties
    def __init__(self, opened: bool = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., properties: _Optional[_Union[MatcherProperties, _Mapping]] = ...) -> None: ...

class MatcherProperties(_message.Message):
    __slots__ = ("max_in_flight", "max_pairs", "features")
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_PAIRS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    max_in_flight: int
    max_pairs: int
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_in_flight: _Optional[int] = ..., max_pairs: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("instance_id",)
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    def __init__(self, instance_id: _Optional[str] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("described", "error", "operators", "data_version")
    DESCRIBED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    DATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    described: bool
    error: _plugin_pb2.Error
    operators: _containers.RepeatedCompositeFieldContainer[Operator]
    data_version: str
    def __init__(self, described: bool = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., operators: _Optional[_Iterable[_Union[Operator, _Mapping]]] = ..., data_version: _Optional[str] = ...) -> None: ...

class Operator(_message.Message):
    __slots__ = ("id", "version", "label", "doc", "value_schema", "property_types", "missing", "purity", "cache_ttl", "cost_ns", "equivalent_cel", "examples")
    class Purity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PURITY_UNSPECIFIED: _ClassVar[Operator.Purity]
        PURITY_VOLATILE: _ClassVar[Operator.Purity]
        PURITY_PURE: _ClassVar[Operator.Purity]
        PURITY_TIME: _ClassVar[Operator.Purity]
        PURITY_DATA: _ClassVar[Operator.Purity]
    PURITY_UNSPECIFIED: Operator.Purity
    PURITY_VOLATILE: Operator.Purity
    PURITY_PURE: Operator.Purity
    PURITY_TIME: Operator.Purity
    PURITY_DATA: Operator.Purity
    class Missing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MISSING_UNSPECIFIED: _ClassVar[Operator.Missing]
        MISSING_FAILS: _ClassVar[Operator.Missing]
        MISSING_NO_MATCH: _ClassVar[Operator.Missing]
        MISSING_MATCHES: _ClassVar[Operator.Missing]
    MISSING_UNSPECIFIED: Operator.Missing
    MISSING_FAILS: Operator.Missing
    MISSING_NO_MATCH: Operator.Missing
    MISSING_MATCHES: Operator.Missing
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    VALUE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PROPERTY_TYPES_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    PURITY_FIELD_NUMBER: _ClassVar[int]
    CACHE_TTL_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    EQUIVALENT_CEL_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: str
    label: str
    doc: str
    value_schema: bytes
    property_types: _containers.RepeatedScalarFieldContainer[str]
    missing: Operator.Missing
    purity: Operator.Purity
    cache_ttl: _duration_pb2.Duration
    cost_ns: int
    equivalent_cel: str
    examples: _containers.RepeatedCompositeFieldContainer[Example]
    def __init__(self, id: _Optional[str] = ..., version: _Optional[str] = ..., label: _Optional[str] = ..., doc: _Optional[str] = ..., value_schema: _Optional[bytes] = ..., property_types: _Optional[_Iterable[str]] = ..., missing: _Optional[_Union[Operator.Missing, str]] = ..., purity: _Optional[_Union[Operator.Purity, str]] = ..., cache_ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., cost_ns: _Optional[int] = ..., equivalent_cel: _Optional[str] = ..., examples: _Optional[_Iterable[_Union[Example, _Mapping]]] = ...) -> None: ...

class Example(_message.Message):
    __slots__ = ("value_json", "property_json", "result", "now_us")
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    PROPERTY_JSON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    value_json: bytes
    property_json: bytes
    result: Verdict
    now_us: int
    def __init__(self, value_json: _Optional[bytes] = ..., property_json: _Optional[bytes] = ..., result: _Optional[_Union[Verdict, str]] = ..., now_us: _Optional[int] = ...) -> None: ...

class Program(_message.Message):
    __slots__ = ("program_id", "operator_id", "value_json")
    PROGRAM_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    program_id: bytes
    operator_id: str
    value_json: bytes
    def __init__(self, program_id: _Optional[bytes] = ..., operator_id: _Optional[str] = ..., value_json: _Optional[bytes] = ...) -> None: ...

class CompileRequest(_message.Message):
    __slots__ = ("instance_id", "programs")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    programs: _containers.RepeatedCompositeFieldContainer[Program]
    def __init__(self, instance_id: _Optional[str] = ..., programs: _Optional[_Iterable[_Union[Program, _Mapping]]] = ...) -> None: ...

class CompileResponse(_message.Message):
    __slots__ = ("results", "error")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CompileResult]
    error: _plugin_pb2.Error
    def __init__(self, results: _Optional[_Iterable[_Union[CompileResult, _Mapping]]] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

class CompileResult(_message.Message):
    __slots__ = ("compiled", "diagnostics", "reads", "cost_ns")
    COMPILED_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    compiled: bool
    diagnostics: _containers.RepeatedCompositeFieldContainer[_plugin_pb2.Diagnostic]
    reads: _containers.RepeatedScalarFieldContainer[str]
    cost_ns: int
    def __init__(self, compiled: bool = ..., diagnostics: _Optional[_Iterable[_Union[_plugin_pb2.Diagnostic, _Mapping]]] = ..., reads: _Optional[_Iterable[str]] = ..., cost_ns: _Optional[int] = ...) -> None: ...

class MatchBatchRequest(_message.Message):
    __slots__ = ("instance_id", "programs", "values", "pair_program", "pair_value", "now_us")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PAIR_PROGRAM_FIELD_NUMBER: _ClassVar[int]
    PAIR_VALUE_FIELD_NUMBER: _ClassVar[int]
    NOW_US_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    programs: _containers.RepeatedCompositeFieldContainer[Program]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    pair_program: _containers.RepeatedScalarFieldContainer[int]
    pair_value: _containers.RepeatedScalarFieldContainer[int]
    now_us: int
    def __init__(self, instance_id: _Optional[str] = ..., programs: _Optional[_Iterable[_Union[Program, _Mapping]]] = ..., values: _Optional[_Iterable[bytes]] = ..., pair_program: _Optional[_Iterable[int]] = ..., pair_value: _Optional[_Iterable[int]] = ..., now_us: _Optional[int] = ...) -> None: ...

class MatchBatchResponse(_message.Message):
    __slots__ = ("verdicts", "errors", "need_programs", "data_version", "ttl", "error")
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    NEED_PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    DATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    verdicts: bytes
    errors: _containers.RepeatedCompositeFieldContainer[PairError]
    need_programs: _containers.RepeatedScalarFieldContainer[int]
    data_version: str
    ttl: _duration_pb2.Duration
    error: _plugin_pb2.Error
    def __init__(self, verdicts: _Optional[bytes] = ..., errors: _Optional[_Iterable[_Union[PairError, _Mapping]]] = ..., need_programs: _Optional[_Iterable[int]] = ..., data_version: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

class PairError(_message.Message):
    __slots__ = ("pair", "error")
    PAIR_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    pair: int
    error: _plugin_pb2.Error
    def __init__(self, pair: _Optional[int] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

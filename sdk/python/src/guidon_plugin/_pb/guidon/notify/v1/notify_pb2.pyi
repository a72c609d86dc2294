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
    properties: NotifierProperties
    def __init__(self, opened: bool = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., properties: _Optional[_Union[NotifierProperties, _Mapping]] = ...) -> None: ...

class NotifierProperties(_message.Message):
    __slots__ = ("max_items", "max_in_flight", "per_second", "burst", "per_destination", "dedup_window", "max_text_bytes", "formats", "features")
    MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    PER_DESTINATION_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    MAX_TEXT_BYTES_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    max_items: int
    max_in_flight: int
    per_second: float
    burst: int
    per_destination: bool
    dedup_window: _duration_pb2.Duration
    max_text_bytes: int
    formats: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_items: _Optional[int] = ..., max_in_flight: _Optional[int] = ..., per_second: _Optional[float] = ..., burst: _Optional[int] = ..., per_destination: bool = ..., dedup_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_text_bytes: _Optional[int] = ..., formats: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...

class Notification(_message.Message):
    __slots__ = ("notification_id", "attempt", "expires_us", "destination", "project", "action", "event_json", "event_url", "person", "text", "segments", "template", "suppressed", "test")
    NOTIFICATION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_US_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EVENT_JSON_FIELD_NUMBER: _ClassVar[int]
    EVENT_URL_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSED_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    notification_id: str
    attempt: int
    expires_us: int
    destination: str
    project: Project
    action: Action
    event_json: bytes
    event_url: str
    person: Person
    text: str
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    template: str
    suppressed: int
    test: bool
    def __init__(self, notification_id: _Optional[str] = ..., attempt: _Optional[int] = ..., expires_us: _Optional[int] = ..., destination: _Optional[str] = ..., project: _Optional[_Union[Project, _Mapping]] = ..., action: _Optional[_Union[Action, _Mapping]] = ..., event_json: _Optional[bytes] = ..., event_url: _Optional[str] = ..., person: _Optional[_Union[Person, _Mapping]] = ..., text: _Optional[str] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., template: _Optional[str] = ..., suppressed: _Optional[int] = ..., test: bool = ...) -> None: ...

class Project(_message.Message):
    __slots__ = ("id", "name", "url")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    url: str
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., url: _Optional[str] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("id", "name", "url", "tags")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    url: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., url: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class Person(_message.Message):
    __slots__ = ("display", "url", "properties_json")
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_JSON_FIELD_NUMBER: _ClassVar[int]
    display: str
    url: str
    properties_json: bytes
    def __init__(self, display: _Optional[str] = ..., url: _Optional[str] = ..., properties_json: _Optional[bytes] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("kind", "value", "href")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[Segment.Kind]
        KIND_TEXT: _ClassVar[Segment.Kind]
        KIND_BOLD: _ClassVar[Segment.Kind]
        KIND_LINK: _ClassVar[Segment.Kind]
        KIND_CODE: _ClassVar[Segment.Kind]
        KIND_USER: _ClassVar[Segment.Kind]
    KIND_UNSPECIFIED: Segment.Kind
    KIND_TEXT: Segment.Kind
    KIND_BOLD: Segment.Kind
    KIND_LINK: Segment.Kind
    KIND_CODE: Segment.Kind
    KIND_USER: Segment.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HREF_FIELD_NUMBER: _ClassVar[int]
    kind: Segment.Kind
    value: str
    href: str
    def __init__(self, kind: _Optional[_Union[Segment.Kind, str]] = ..., value: _Optional[str] = ..., href: _Optional[str] = ...) -> None: ...

class NotifyRequest(_message.Message):
    __slots__ = ("instance_id", "generation", "items")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    generation: int
    items: _containers.RepeatedCompositeFieldContainer[Notification]
    def __init__(self, instance_id: _Optional[str] = ..., generation: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Notification, _Mapping]]] = ...) -> None: ...

class NotifyResponse(_message.Message):
    __slots__ = ("results", "error")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[NotifyResult]
    error: _plugin_pb2.Error
    def __init__(self, results: _Optional[_Iterable[_Union[NotifyResult, _Mapping]]] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ...) -> None: ...

class NotifyResult(_message.Message):
    __slots__ = ("outcome", "provider_message_id", "error", "rate")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[NotifyResult.Outcome]
        OUTCOME_DELIVERED: _ClassVar[NotifyResult.Outcome]
        OUTCOME_DUPLICATE: _ClassVar[NotifyResult.Outcome]
        OUTCOME_RETRY: _ClassVar[NotifyResult.Outcome]
        OUTCOME_DROPPED: _ClassVar[NotifyResult.Outcome]
    OUTCOME_UNSPECIFIED: NotifyResult.Outcome
    OUTCOME_DELIVERED: NotifyResult.Outcome
    OUTCOME_DUPLICATE: NotifyResult.Outcome
    OUTCOME_RETRY: NotifyResult.Outcome
    OUTCOME_DROPPED: NotifyResult.Outcome
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    outcome: NotifyResult.Outcome
    provider_message_id: str
    error: _plugin_pb2.Error
    rate: Rate
    def __init__(self, outcome: _Optional[_Union[NotifyResult.Outcome, str]] = ..., provider_message_id: _Optional[str] = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., rate: _Optional[_Union[Rate, _Mapping]] = ...) -> None: ...

class Rate(_message.Message):
    __slots__ = ("remaining", "reset_after", "scope")
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    RESET_AFTER_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    remaining: int
    reset_after: _duration_pb2.Duration
    scope: str
    def __init__(self, remaining: _Optional[int] = ..., reset_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., scope: _Optional[str] = ...) -> None: ...

class PreviewRequest(_message.Message):
    __slots__ = ("instance_id", "item")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    item: Notification
    def __init__(self, instance_id: _Optional[str] = ..., item: _Optional[_Union[Notification, _Mapping]] = ...) -> None: ...

class PreviewResponse(_message.Message):
    __slots__ = ("rendered", "error", "body", "media_type", "warnings")
    RENDERED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    rendered: bool
    error: _plugin_pb2.Error
    body: bytes
    media_type: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rendered: bool = ..., error: _Optional[_Union[_plugin_pb2.Error, _Mapping]] = ..., body: _Optional[bytes] = ..., media_type: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

"""Steps of the feature files of flagd-testbed, with the unmodified OFREP provider of
OpenFeature as the provider under test.

    venv/bin/behave -D url=http://localhost:8000 -D project_key=phc_... features
"""
from behave import given, then, use_step_matcher, when
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

use_step_matcher("re")

READ = {
    "Boolean": lambda text: {"true": True, "false": False}[text],
    "String": str,
    "Integer": int,
    "Float": float,
}


@given(r'an option "(?P<name>.*)" of type "(?P<kind>.*)" with value "(?P<value>.*)"')
def option(context, name, kind, value):
    """Options are those of flagd's provider: OFREP has no cache to disable."""


@given(r"a (?P<kind>stable) flagd provider")
def provider(context, kind):
    key = context.config.userdata["project_key"]
    api.set_provider_and_wait(OFREPProvider(context.config.userdata["url"], headers_factory=lambda: {"Authorization": "Bearer " + key}))
    context.client = api.get_client()
    context.targeting_key, context.attributes = "testbed", {}


@given(r'a (?P<kind>\w+)-flag with key "(?P<key>.*)" and a default value "(?P<default>.*)"')
def flag(context, kind, key, default):
    context.kind, context.key, context.default = kind, key, READ[kind](default)


@given(r'a context containing a key "(?P<name>.*)", with type "(?P<kind>.*)" and with value "(?P<value>.*)"')
def attribute(context, name, kind, value):
    context.attributes[name] = READ[kind](value)


@given(r'a context containing a targeting key with value "(?P<value>.*)"')
def targeting_key(context, value):
    context.targeting_key = value


@when(r"the flag was evaluated with details")
def evaluate(context):
    details = getattr(context.client, f"get_{context.kind.lower()}_details")
    context.details = details(context.key, context.default, EvaluationContext(context.targeting_key, context.attributes))


@then(r'the resolved details value should be "(?P<value>.*)"')
def resolved(context, value):
    want, got = READ[context.kind](value), context.details.value
    assert got == want and type(got) is type(want), f"got {got!r}, want {want!r}: {context.details}"


@then(r'the reason should be "(?P<reason>.*)"')
def reason(context, reason):
    # OFREP has five reasons, and DEFAULT is none of them. The default variant of these
    # flags is that of a condition without a filter, which everyone matches.
    want = "TARGETING_MATCH" if reason == "DEFAULT" else reason
    assert context.details.reason == want, f"got {context.details.reason}, want {want}: {context.details}"


@then(r'the error-code should be "(?P<code>.*)"')
def error_code(context, code):
    got = context.details.error_code.value if context.details.error_code else ""
    assert got == code, f"got {got}, want {code}: {context.details}"

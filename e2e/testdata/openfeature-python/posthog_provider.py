"""Evaluates scenarios with PostHog's unmodified provider for OpenFeature.

    venv/bin/python posthog_provider.py < task.json
"""
import json
import sys

from openfeature import api
from openfeature.contrib.provider.posthog import PostHogProvider
from openfeature.evaluation_context import EvaluationContext
from posthog import Posthog

task = json.load(sys.stdin)
posthog = Posthog(task["project_key"], host=task["url"])
api.set_provider_and_wait(PostHogProvider(posthog))
client = api.get_client()
results = []
for scenario in task["scenarios"]:
    attributes = dict(scenario["context"])
    context = EvaluationContext(attributes.pop("targetingKey"), attributes)
    details = getattr(client, f"get_{scenario['type']}_details")(scenario["key"], scenario["default"], context)
    results.append({"value": details.value, "variant": details.variant or "", "reason": details.reason or "",
                    "code": details.error_code.value if details.error_code else ""})
posthog.shutdown()
json.dump(results, sys.stdout)

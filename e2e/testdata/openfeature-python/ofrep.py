"""Evaluates scenarios with the unmodified OFREP provider of OpenFeature.

    venv/bin/python ofrep.py < task.json
"""
import json
import sys

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

task = json.load(sys.stdin)
api.set_provider_and_wait(OFREPProvider(task["url"], headers_factory=lambda: {"Authorization": "Bearer " + task["project_key"]}))
client = api.get_client()
results = []
for scenario in task["scenarios"]:
    attributes = dict(scenario["context"])
    context = EvaluationContext(attributes.pop("targetingKey"), attributes)
    evaluate = getattr(client, f"get_{scenario['type']}_details")
    details = evaluate(scenario["key"], scenario["default"], context)
    results.append({"value": details.value, "variant": details.variant or "", "reason": details.reason or "",
                    "code": details.error_code.value if details.error_code else ""})
json.dump(results, sys.stdout)

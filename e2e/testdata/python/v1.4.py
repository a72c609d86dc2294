"""Evaluates flags with the last posthog-python 1.x, as an application does.

It evaluates simple flags itself, from /api/feature_flag/, and asks /decide/ for all
others. It cannot send person properties.

    v1.4/bin/python v1.4.py < task.json
"""
import json
import sys

from posthog import Client

task = json.load(sys.stdin)
failures = []
client = Client(task["project_key"], host=task["url"], personal_api_key=task["personal_key"], flush_at=100,
                on_error=lambda e, _: failures.append(str(e)))
seen = {"remote": {}, "local": {}, "failures": failures}
for person in task["ids"]:
    seen["remote"][person["id"]] = client.get_feature_variants(person["id"])
    seen["local"][person["id"]] = {key: client.feature_enabled(key, person["id"]) for key in task["keys"]}
client.shutdown()
json.dump(seen, sys.stdout)

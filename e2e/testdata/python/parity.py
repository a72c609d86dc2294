"""Evaluates every flag for every person with an unmodified posthog-python twice,
remotely and locally, and prints both results.

    newest/bin/python parity.py < task.json
"""
import json
import logging
import sys

from posthog import Posthog

logging.disable(logging.CRITICAL)
task = json.load(sys.stdin)
remote = Posthog(task["project_key"], host=task["url"], feature_flags_request_timeout_seconds=10)
local = Posthog(task["project_key"], host=task["url"], secret_key=task["personal_key"], poll_interval=60)
local.load_feature_flags()
seen = {"remote": {}, "local": {}}
for person in task["people"]:
    options = {"groups": person["groups"] or {}, "person_properties": person["person_properties"] or {},
               "group_properties": person["group_properties"] or {}, "device_id": person.get("device_id")}
    seen["remote"][person["distinct_id"]] = remote.get_all_flags(person["distinct_id"], **options)
    seen["local"][person["distinct_id"]] = local.get_all_flags(person["distinct_id"], only_evaluate_locally=True, **options)
json.dump(seen, sys.stdout)

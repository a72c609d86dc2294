"""Uses an unmodified posthog-python as an application does and prints the results.

    newest/bin/python judge.py < task.json
"""
import json
import sys

from posthog import Posthog

task = json.load(sys.stdin)
failures = []
options = {"host": task["url"], "flush_at": 100, "flush_interval": 0.2, "on_error": lambda e, _: failures.append(str(e))}
remote = Posthog(task["project_key"], **options)
local = Posthog(task["project_key"], secret_key=task["personal_key"], poll_interval=60, **options)
local.load_feature_flags()

seen = {"remote": {}, "local": {}, "payloads": {}, "failures": failures}
for person in task["ids"]:
    answer = remote.get_all_flags_and_payloads(person["id"], person_properties=person["properties"])
    seen["remote"][person["id"]] = answer["featureFlags"]
    seen["payloads"][person["id"]] = answer["featureFlagPayloads"]
    seen["local"][person["id"]] = local.get_all_flags(
        person["id"], person_properties=person["properties"], only_evaluate_locally=True)

stored = task["run"] + "-stored"
remote.set(distinct_id=stored, properties={"plan": "pro", "age": 42})
for n in range(25):
    remote.capture("ordered", distinct_id=f"{task['run']}-user-{n % 5}", properties={"n": n, "note": 'naïve 💻 "quoted"'})
remote.alias(stored, task["run"] + "-alias")
remote.group_identify("organization", "acme", {"seats": 12})
seen["flag"] = remote.get_feature_flag(task["probe"], stored, person_properties={"plan": "pro", "age": 42})
remote.shutdown()
local.shutdown()
json.dump(seen, sys.stdout)

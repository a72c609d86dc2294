"""Captures with the oldest posthog-python that can be installed. It has no flags.

    oldest/bin/python oldest.py < task.json
"""
import json
import sys

from posthog import Client

task = json.load(sys.stdin)
failures = []
client = Client(task["project_key"], host=task["url"], flush_at=10, on_error=lambda e, _: failures.append(str(e)))
stored = task["run"] + "-stored"
client.identify(stored, {"plan": "pro", "age": 42})
for n in range(25):
    client.capture(f"{task['run']}-user-{n % 5}", "ordered", {"n": n, "note": 'naïve 💻 "quoted"'})
client.alias(stored, task["run"] + "-alias")
client.shutdown()
json.dump({"failures": failures}, sys.stdout)

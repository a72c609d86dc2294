"""Uses an unmodified posthog-python with the secret key of a project, and sends
events by the AI endpoint and by the capture protocol of 2026.

    newest/bin/python secret.py < task.json
"""
import json
import sys

from posthog import Posthog

task = json.load(sys.stdin)
failures = []
options = {"host": task["url"], "on_error": lambda e, _: failures.append(str(e))}
client = Posthog(task["project_key"], secret_key=task["secret_key"], **options)
client.load_feature_flags()
local = client.get_all_flags(task["id"], person_properties=task["properties"], only_evaluate_locally=True)
config = client.get_remote_config_payload(task["config"])
client.capture_ai("$ai_generation", distinct_id="agent", properties={"$ai_model": "m", "$ai_input_tokens": 7})
client.shutdown()
v1 = Posthog(task["project_key"], capture_mode="v1", capture_compression="gzip", **options)
v1.capture("by_v1", distinct_id="server-user", properties={"n": 1})
v1.shutdown()
json.dump({"local": local, "config": config, "failures": failures}, sys.stdout)

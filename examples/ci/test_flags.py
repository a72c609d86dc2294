import json
import os
import unittest
import urllib.request


def flags(distinct_id):
    body = json.dumps({"api_key": "phc_ci_shop", "distinct_id": distinct_id}).encode()
    request = urllib.request.Request(os.environ["GUIDON_URL"] + "/flags/?v=2", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return {key: flag["enabled"] for key, flag in json.load(answer)["flags"].items()}


class FlagsTest(unittest.TestCase):
    def test_invited_users_see_the_flag(self):
        self.assertTrue(flags("ada")["invited"])
        self.assertFalse(flags("linus")["invited"])


if __name__ == "__main__":
    unittest.main()

import assert from "node:assert";
import test from "node:test";

async function flags(distinctId) {
  const answer = await fetch(process.env.GUIDON_URL + "/flags/?v=2", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: "phc_ci_shop", distinct_id: distinctId }),
  });
  return (await answer.json()).flags;
}

test("invited users see the flag", async () => {
  assert.equal((await flags("ada")).invited.enabled, true);
  assert.equal((await flags("linus")).invited.enabled, false);
});

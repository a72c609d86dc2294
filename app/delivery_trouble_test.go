package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hash key whose reference has no content stops the delivery: without a key, hashes
// could be guessed. Events wait until there is one.
func TestEmptyHashKeyStopsDelivery(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := serveConfigFile(t, "")
	sink := fmt.Sprintf("    - {name: hashed, kind: sink, use: file, config: {path: %s}, delivery: {redact: {hash: [email], hash_key: \"${file:%s}\"}}}\n", e.path("hashed"), key)
	e.edit(t, sink)
	e.until(t, "the delivery is misconfigured", func() bool {
		answer := e.mustManage(t, http.MethodGet, "/api/plugins/", "")
		return strings.Contains(answer, "delivery.redact.hash_key: the value of ${file:"+key+"} is empty")
	})
	e.post(t, `{"event":"a","distinct_id":"d","properties":{"email":"ada@example.com"}}`)
	if err := os.WriteFile(key, []byte("pepper\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.mustManage(t, http.MethodPost, "/api/plugins/reload", "")
	e.until(t, "the event arrives", func() bool { return len(e.lines(t, "hashed")) == 1 })
	mac := hmac.New(sha256.New, []byte("pepper"))
	mac.Write([]byte("ada@example.com"))
	if raw := e.lines(t, "hashed")[0].raw; !strings.Contains(raw, hex.EncodeToString(mac.Sum(nil))) {
		t.Errorf("hashed with another key: %s", raw)
	}
}

// A filter value that the matcher refuses is logged as a mistake of the config, and not as
// a matcher that is away.
func TestRefusedFilterValueIsLogged(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "")
	e.edit(t, "    - {name: networks, kind: matcher, use: cidr}\n"+
		fmt.Sprintf("    - {name: inside, kind: sink, use: file, config: {path: %s}, delivery: {properties: [{key: ip, operator: cidr/contains, value: nonsense}]}}\n", e.path("inside")))
	e.until(t, "both are ready", func() bool {
		now := e.plugins(t)
		return now["networks"].State == "ready" && now["inside"].State == "ready"
	})
	e.post(t, `{"event":"a","distinct_id":"d","properties":{"ip":"10.1.2.3"}}`)
	e.until(t, "the log names the mistake", func() bool {
		return e.logs.FilterMessage("sink delivery misconfigured: no events are sent").Len() == 1
	})
}

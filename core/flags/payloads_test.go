package flags_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/sealed"
)

const (
	secretPayload = `"{\"token\":\"s3cret\"}"`
	redacted      = `"\"********* (encrypted)\""`
)

func newKeyring(t testing.TB) *sealed.Keyring {
	t.Helper()
	r, err := sealed.NewKeyring(bytes.Repeat([]byte{7}, sealed.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// payload returns the remote configuration of the flag conf as JSON.
func (h *server) payload(key string) string {
	return strings.TrimSpace(string(h.as(key).do("GET", "/api/projects/@current/feature_flags/conf/remote_config?token=phc_one", "").want(200).body))
}

func TestEncryptedPayloads(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		made := h.do("POST", "/api/projects/1/feature_flags/", `{"key":"conf","is_remote_configuration":true,"has_encrypted_payloads":true,`+
			`"filters":{"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{"true":{"token":"s3cret"}}}}`).want(201)
		var f struct {
			ID      int64
			Remote  bool `json:"is_remote_configuration"`
			Sealed  bool `json:"has_encrypted_payloads"`
			Filters json.RawMessage
		}
		made.into(&f)
		if !f.Remote || !f.Sealed || !strings.Contains(string(f.Filters), redacted) {
			t.Fatalf("created: %s", made.body)
		}
		if got := h.payload("phs_one"); got != secretPayload {
			t.Errorf("a secret key reads %s", got)
		}
		if got := h.payload("phx_ada"); got != secretPayload {
			t.Errorf("a key that may write reads %s", got)
		}
		if got := h.payload("phx_read"); got != redacted {
			t.Errorf("a key that may read only reads %s", got)
		}

		// Clients send back the whole flag as they have read it.
		h.patch(f.ID, `{"name":"renamed","filters":`+string(f.Filters)+`}`).want(200)
		if got := h.payload("phs_one"); got != secretPayload {
			t.Errorf("after an update with the redacted payload: %s", got)
		}
		h.patch(f.ID, `{"has_encrypted_payloads":false}`).want(400)
		h.patch(f.ID, `{"is_remote_configuration":false}`).want(400)

		const flag = "/api/projects/1/feature_flags/"
		for _, path := range []string{
			flag, flag + itoa(f.ID), flag + itoa(f.ID) + "/activity", flag + "activity", flag + "my_flags",
			"/flags/definitions?token=phc_one", "/flags/definitions?token=phc_one&send_cohorts",
		} {
			body := string(h.do("GET", path, "").want(200).body)
			if strings.Contains(body, "s3cret") || strings.Contains(body, "guidon:sealed") {
				t.Errorf("GET %s has the payload: %s", path, body)
			}
		}
		h.noSecretIn("feature_flags", "feature_flag_versions", "activity_log")
		for _, path := range []string{"/flags/definitions?token=phc_one", "/api/feature_flag/local_evaluation?token=phc_one", "/api/projects/1/feature_flags/local_evaluation"} {
			if body := string(h.as("phs_one").do("GET", path, "").want(200).body); !strings.Contains(body, `"has_encrypted_payloads":true`) || !strings.Contains(body, redacted) {
				t.Errorf("GET %s: %s", path, body)
			}
		}

		h.patch(f.ID, `{"has_encrypted_payloads":false,"filters":{"groups":[{"properties":[]}],"payloads":{"true":"1"}}}`).want(200)
		if got := h.payload("phx_read"); got != `"1"` {
			t.Errorf("without encryption: %s", got)
		}
	})
}

// noSecretIn fails if a table has the secret of the payload in any column.
func (h *server) noSecretIn(tables ...string) {
	h.t.Helper()
	for _, table := range tables {
		var rows []map[string]any
		if err := h.db.Read(h.t.Context()).NewSelect().Table(table).Scan(h.t.Context(), &rows); err != nil {
			h.t.Fatal(err)
		}
		text, err := json.Marshal(rows)
		if err != nil || len(rows) == 0 {
			h.t.Fatalf("%s: %d rows, %v", table, len(rows), err)
		}
		if bytes.Contains(text, []byte("s3cret")) {
			h.t.Errorf("%s has the payload in clear: %s", table, text)
		}
	}
}

func TestOnlyRemoteConfigurationsHaveEncryptedPayloads(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.do("POST", "/api/projects/1/feature_flags/", `{"key":"a","has_encrypted_payloads":true}`).fails(400, "invalid_input", "has_encrypted_payloads")
		h.do("POST", "/api/projects/1/feature_flags/", `{"key":"a","is_remote_configuration":true,"has_encrypted_payloads":true,"filters":{"groups":[{}],"payloads":{"true":`+redacted+`}}}`).
			fails(400, "invalid_input", "filters")
		h.create(`{"key":"plain"}`)
		h.create(`{"key":"remote","is_remote_configuration":true}`)
		var list struct{ Results []struct{ Key string } }
		h.do("GET", "/api/projects/1/feature_flags/?type=remote_config", "").want(200).into(&list)
		if len(list.Results) != 1 || list.Results[0].Key != "remote" {
			t.Errorf("remote configurations: %+v", list.Results)
		}
	})
}

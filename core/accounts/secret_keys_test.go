package accounts_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/secretkey"
	"github.com/guidonhq/guidon/core/fault"
)

const secretKeys = "/api/projects/1/project_secret_api_keys"

// secretView is a secret key as the API shows it.
type secretView struct {
	ID           int64    `json:"id"`
	Label        string   `json:"label"`
	Value        *string  `json:"value"`
	MaskValue    string   `json:"mask_value"`
	Scopes       []string `json:"scopes"`
	LastUsedAt   *string  `json:"last_used_at"`
	LastRolledAt *string  `json:"last_rolled_at"`
	ExpiresAt    *string  `json:"expires_at"`
}

func into(t *testing.T, r reply, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), v); err != nil {
		t.Fatalf("%s: %v", r.text, err)
	}
}

func TestSecretKeyIsShownOnce(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		var made, again, rolled secretView
		into(t, w.want(t, 201, "owner", "POST", secretKeys, `{"label":"shop","scopes":["feature_flag:read"]}`), &made)
		if made.Value == nil || !strings.HasPrefix(*made.Value, "phs_") || len(*made.Value) != 47 {
			t.Fatalf("the secret is %v", made.Value)
		}
		own := secretKeys + "/" + strconv.FormatInt(made.ID, 10)
		into(t, w.want(t, 200, "member", "GET", own, ""), &again)
		if again.Value != nil || again.MaskValue != "phs_..."+(*made.Value)[43:] || again.Label != "shop" {
			t.Errorf("read again: %+v", again)
		}
		into(t, w.want(t, 200, "owner", "POST", own+"/roll", ""), &rolled)
		if rolled.Value == nil || *rolled.Value == *made.Value || rolled.LastRolledAt == nil {
			t.Errorf("rolled: %+v", rolled)
		}
		if _, err := w.auth.PrincipalByKey(t.Context(), *made.Value); err == nil {
			t.Error("the secret is valid after it was replaced")
		}
		p, err := w.auth.PrincipalByKey(t.Context(), *rolled.Value)
		if err != nil || !p.SecretKey || p.CurrentProjectID != 1 || !p.HasScope("feature_flag:read") || p.HasScope("feature_flag:write") {
			t.Fatalf("the principal is %+v, %v", p, err)
		}
		into(t, w.want(t, 200, "owner", "PATCH", own, `{"label":"till"}`), &again)
		if again.Label != "till" || again.MaskValue != rolled.MaskValue {
			t.Errorf("changed: %+v", again)
		}
		w.want(t, 204, "owner", "DELETE", own, "")
		w.want(t, 404, "owner", "DELETE", own, "")
		if _, err := w.auth.PrincipalByKey(t.Context(), *rolled.Value); err == nil {
			t.Error("the secret is valid after it was revoked")
		}
		var log struct {
			Results []struct {
				Activity string
				Detail   struct{ Name string }
			}
		}
		answer := w.want(t, 200, "member", "GET", secretKeys+"/activity", "")
		into(t, answer, &log)
		var done []string
		for _, e := range log.Results {
			done = append(done, e.Activity+" "+e.Detail.Name)
		}
		if got := strings.Join(done, ", "); got != "deleted till, updated till, updated shop, created shop" {
			t.Errorf("activity: %s", got)
		}
		if strings.Contains(answer.text, *rolled.Value) {
			t.Error("the activity log has the secret")
		}
	})
}

func TestExpiredSecretKeyHasItsOwnCode(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		in := secretkey.NewKey{ProjectID: 1, Label: "a", Scopes: []string{"feature_flag:read"}}
		var secret string
		for life := 100 * time.Millisecond; secret == ""; life *= 2 { // on a slow machine the end may come before the key
			in.ExpiresAt = time.Now().Add(life)
			var err error
			if _, secret, err = w.auth.SecretKeys.Create(t.Context(), in, nil); err != nil && time.Now().Before(in.ExpiresAt) {
				t.Fatal(err)
			}
		}
		for {
			_, err := w.auth.PrincipalByKey(t.Context(), secret)
			if err == nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if f := fault.From(err); f == nil || f.Kind != fault.Unauthenticated || f.Code != auth.CodeSecretExpired {
				t.Errorf("got %v, want %s", err, auth.CodeSecretExpired)
			}
			return
		}
	})
}

// A time in the past is no end of a key, also the one that stands for no end in the
// server.
func TestKeysDoNotEndInThePast(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		for _, end := range []string{"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2020-01-01T00:00:00Z"} {
			w.want(t, 400, "owner", "POST", secretKeys, `{"label":"a","scopes":["feature_flag:read"],"expires_at":"`+end+`"}`)
			w.want(t, 400, "owner", "POST", "/api/personal_api_keys", `{"label":"a","scopes":["feature_flag:read"],"expires_at":"`+end+`"}`)
		}
	})
}

func TestSecretKeyRights(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		const in = `{"label":"a","scopes":["feature_flag:read"]}`
		w.want(t, 403, "member", "POST", secretKeys, in)
		w.want(t, 201, "admin", "POST", secretKeys, in)
		w.want(t, 400, "owner", "POST", secretKeys, `{"label":"a","scopes":["feature_flag:write"]}`)
		w.want(t, 400, "owner", "POST", secretKeys, `{"label":"a","scopes":[]}`)
		w.want(t, 400, "owner", "POST", secretKeys, `{"label":" ","scopes":["feature_flag:read"]}`)
		w.want(t, 400, "owner", "POST", secretKeys, `{"label":"a","scopes":["feature_flag:read"],"expires_at":"2020-01-01T00:00:00Z"}`)

		end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		w.keys["narrow"] = w.makeKey(t, "owner", `{"label":"n","scopes":["project:write"]}`)
		w.want(t, 403, "narrow", "POST", secretKeys, in)
		w.want(t, 403, "narrow", "PATCH", "/api/projects/1/rotate_secret_token", "")
		w.keys["ending"] = w.makeKey(t, "owner", `{"label":"e","scopes":["*"],"expires_at":"`+end+`"}`)
		var made secretView
		into(t, w.want(t, 201, "ending", "POST", secretKeys, in), &made)
		if made.ExpiresAt == nil {
			t.Error("a key with an end made a secret without one")
		}
		w.want(t, 201, "ending", "POST", secretKeys, `{"label":"a","scopes":["feature_flag:read"],"expires_at":null}`)
		w.want(t, 403, "ending", "PATCH", secretKeys+"/"+strconv.FormatInt(made.ID, 10), `{"expires_at":null}`)
		w.want(t, 403, "ending", "PATCH", "/api/projects/1/rotate_secret_token", "")
	})
}

// makeKey returns a new personal key of a caller.
func (w *world) makeKey(t *testing.T, caller, body string) string {
	t.Helper()
	var made struct{ Value string }
	into(t, w.want(t, 201, caller, "POST", "/api/personal_api_keys", body), &made)
	return made.Value
}

func TestProjectHasAtMostFiftySecretKeys(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		in := secretkey.NewKey{ProjectID: 1, Label: "a", Scopes: []string{"feature_flag:read"}}
		for range secretkey.MaxNamed {
			if _, _, err := w.auth.SecretKeys.Create(t.Context(), in, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.want(t, 400, "owner", "POST", secretKeys, `{"label":"one more","scopes":["feature_flag:read"]}`)
		w.want(t, 204, "owner", "DELETE", secretKeys+"/1", "")
		w.want(t, 201, "owner", "POST", secretKeys, `{"label":"one more","scopes":["feature_flag:read"]}`)
		w.want(t, 200, "owner", "PATCH", "/api/projects/1/rotate_secret_token", "")
	})
}

func TestRotatingSecret(t *testing.T) {
	run(t, func(t *testing.T, w *world) {
		var p struct {
			Secret *string `json:"secret_api_token"`
			Backup *string `json:"secret_api_token_backup"`
		}
		valid := func(secret string) bool {
			_, err := w.auth.PrincipalByKey(t.Context(), secret)
			return err == nil
		}
		rotate := func() string {
			p.Secret, p.Backup = nil, nil
			into(t, w.want(t, 200, "owner", "PATCH", "/api/projects/1/rotate_secret_token", ""), &p)
			return *p.Secret
		}
		w.want(t, 200, "owner", "PATCH", "/api/projects/1/delete_secret_token_backup", "")
		first := rotate()
		if p.Backup != nil {
			t.Error("the first secret has a backup")
		}
		second := rotate()
		if p.Backup == nil || !valid(first) || !valid(second) {
			t.Errorf("after a rotation: backup %v, first %v, second %v", p.Backup, valid(first), valid(second))
		}
		third := rotate()
		if valid(first) || !valid(second) || !valid(third) {
			t.Errorf("after two rotations: %v %v %v", valid(first), valid(second), valid(third))
		}
		p.Secret, p.Backup = nil, nil
		into(t, w.want(t, 200, "owner", "PATCH", "/api/projects/1/delete_secret_token_backup", ""), &p)
		if p.Backup != nil || *p.Secret != "phs_..."+third[43:] || valid(second) || !valid(third) {
			t.Errorf("without the backup: %v %v, second %v, third %v", *p.Secret, p.Backup, valid(second), valid(third))
		}
	})
}

package flags_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/schedule"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// owners are accounts in which Ada is an owner.
type owners struct{ *accounts }

func (owners) Members(context.Context, string) ([]auth.Member, error) {
	return []auth.Member{{User: ada, Level: auth.LevelOwner}}, nil
}

func (owners) Project(_ context.Context, id int64) (auth.Project, error) {
	return auth.Project{ID: id, OrganizationID: "018b0c1e-0000-7aaa-8bbb-000000000001"}, nil
}

func (h *server) schedules() *schedule.Service {
	return schedule.NewService(schedule.NewStore(h.db), h.service, owners{h.accounts}, zap.NewNop())
}

// schedule schedules a change of a flag in a minute.
func (h *server) schedule(s *schedule.Service, id int64, payload string) schedule.Change {
	h.t.Helper()
	who := &auth.Principal{User: ada, OrgLevel: auth.LevelOwner, Scopes: []string{"*"}}
	made, err := s.Create(h.t.Context(), who, auth.Project{ID: 1}, id, json.RawMessage(payload), time.Now().Add(time.Minute))
	if err != nil {
		h.t.Fatal(err)
	}
	return made
}

func (h *server) runSchedules(s *schedule.Service) {
	h.t.Helper()
	if err := s.RunDue(h.t.Context(), time.Now().Add(time.Hour)); err != nil {
		h.t.Fatal(err)
	}
}

const remoteFlag = `{"key":"conf","is_remote_configuration":true,"filters":{"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{"true":{"token":"s3cret"}}}}`

func variantsWith(token string) string {
	return `{"operation":"update_variants","value":{"variants":[],"payloads":{"true":"{\"token\":\"` + token + `\"}"}}}`
}

// A flag whose payloads become encrypted has none of them in clear, in nothing that is
// stored beside it.
func TestHistoryOfAFlagIsEncryptedWithIt(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.do("POST", base, `{"key":"conf","filters":{"groups":[{"properties":[]}],"payloads":{"true":"\"s3cret of a release flag\""}}}`).flag(201)
		h.patch(f.ID, remoteFlag).want(200)
		for i := range 30 { // more than a page
			h.patch(f.ID, `{"name":"`+itoa(int64(i))+`","filters":{"groups":[{"properties":[]}],"payloads":{"true":{"token":"s3cret","n":`+itoa(int64(i))+`}}}}`).want(200)
		}
		s := h.schedules()
		h.schedule(s, f.ID, variantsWith("s3cret too"))
		got := h.patch(f.ID, `{"has_encrypted_payloads":true,"filters":{"groups":[{"properties":[]}],"payloads":{"true":{"token":"s3cret"}}}}`).flag(200)
		if got.Version != 33 {
			t.Errorf("version %d", got.Version)
		}
		tables := []string{"feature_flags", "feature_flag_versions", "activity_log", "scheduled_changes"}
		h.noSecretIn(tables...)
		made := h.schedule(s, f.ID, variantsWith("s3cret later"))
		if !sealed.HasSealed(made.Payload) {
			t.Errorf("the scheduled change is %s", made.Payload)
		}
		h.noSecretIn(tables...)

		h.rollback(f.ID, 3).want(200) // the first version of the remote configuration but one
		if got := h.payload("phs_one"); got != `"{\"token\":\"s3cret\",\"n\":0}"` {
			t.Errorf("a secret key reads after the rollback: %s", got)
		}
		if got := h.payload("phx_read"); got != redacted {
			t.Errorf("another key reads after the rollback: %s", got)
		}
		h.rollback(f.ID, 1).fails(400, "invalid_input", "has_encrypted_payloads")
		h.runSchedules(s)
		if got := h.payload("phs_one"); got != `"{\"token\":\"s3cret later\"}"` {
			t.Errorf("a secret key reads after the scheduled changes: %s", got)
		}
		h.noSecretIn(tables...)
		if got := h.as("phx_one").do("GET", path(f.ID)+"activity/", "").want(200).body; bytes.Contains(got, []byte("s3cret")) || bytes.Contains(got, []byte("guidon:sealed")) {
			t.Errorf("activity: %s", got)
		}
	})
}

func (h *server) rollback(id, version int64) answer {
	h.t.Helper()
	return h.do("POST", path(id)+"rollback/", `{"version":`+itoa(version)+`}`)
}

// A change that was scheduled while payloads were encrypted does not publish them.
func TestScheduledPayloadStaysEncrypted(t *testing.T) {
	h := onOne(t)
	f := h.do("POST", base, remoteFlag).flag(201)
	h.patch(f.ID, `{"has_encrypted_payloads":true}`).want(200)
	s := h.schedules()
	h.schedule(s, f.ID, variantsWith("s3cret"))
	h.patch(f.ID, `{"has_encrypted_payloads":false,"filters":{"groups":[{"properties":[]}],"payloads":{"true":"1"}}}`).want(200)
	h.runSchedules(s)
	if got := h.payload("phx_read"); got != `"1"` {
		t.Errorf("got %s", got)
	}
}

// keyring returns a keyring of keys that repeat a byte.
func keyring(t testing.TB, keys ...byte) *sealed.Keyring {
	t.Helper()
	var raw [][]byte
	for _, k := range keys {
		raw = append(raw, bytes.Repeat([]byte{k}, sealed.KeyBytes))
	}
	r, err := sealed.NewKeyring(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// After a change of the key everything is encrypted with the new one, and the old
// one is not needed any more.
func TestReencrypt(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.do("POST", base, remoteFlag).flag(201)
		h.patch(f.ID, `{"has_encrypted_payloads":true}`).want(200)
		h.patch(f.ID, `{"filters":{"groups":[{"properties":[]}],"payloads":{"true":{"token":"new"}}}}`).want(200)
		h.schedule(h.schedules(), f.ID, variantsWith("s3cret"))
		plain := h.do("POST", base, strings.Replace(remoteFlag, "conf", "plain", 1)).flag(201)
		run := func(after int64, keys *sealed.Keyring) (history.Counts, []int64) {
			var failed []int64
			n, err := history.NewSealer(h.db, keys).Reencrypt(t.Context(), after, func(int64) {}, func(_, id int64, _ error) { failed = append(failed, id) })
			if err != nil {
				t.Fatal(err)
			}
			return n, failed
		}
		if n, failed := run(0, keyring(t, 9)); n.Flags != 2 || n.Failed != 1 || len(failed) != 1 || failed[0] != f.ID || n.Encrypted != 0 {
			t.Errorf("without the old key: %+v, %v", n, failed)
		}
		if n, _ := run(f.ID, keyring(t, 9, 7)); n.Flags != 1 || n.Encrypted != 0 {
			t.Errorf("after the flag: %+v", n)
		}
		if n, failed := run(0, keyring(t, 9, 7)); n.Encrypted != 5 || len(failed) != 0 { // the flag, three versions, one change
			t.Errorf("got %+v, %v", n, failed)
		}
		if n, failed := run(0, keyring(t, 9)); n.Encrypted != 0 || len(failed) != 0 {
			t.Errorf("the second time, without the old key: %+v, %v", n, failed)
		}
		if n, failed := run(0, keyring(t, 7)); n.Failed != 1 || len(failed) != 1 {
			t.Errorf("with the old key only: %+v, %v", n, failed)
		}
		if got := h.do("GET", path(plain.ID), "").want(200).body; !bytes.Contains(got, []byte("s3cret")) {
			t.Errorf("a flag without encrypted payloads: %s", got)
		}
	})
}

// A scheduled change is checked outside of transactions: a plugin that does not
// answer does not keep other writers waiting. A change of the flag meanwhile is not
// lost.
func TestScheduledChangeHoldsNoLockWhileItIsChecked(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a","filters":{"groups":[{"properties":[],"rollout_percentage":1}]}}`)
		other := h.create(`{"key":"b"}`)
		s := h.schedules()
		h.schedule(s, f.ID, `{"operation":"add_release_condition","value":{"groups":[{"properties":[{"key":"k","type":"person","operator":"test/slow","value":1}]}]}}`)
		h.operators.begun, h.operators.release = make(chan struct{}), make(chan struct{})
		var done atomic.Bool
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			if err := s.RunDue(context.WithoutCancel(t.Context()), time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			done.Store(true)
		}()
		<-h.operators.begun
		h.patch(other.ID, `{"name":"written meanwhile"}`).want(200)
		h.patch(f.ID, `{"name":"changed meanwhile"}`).want(200)
		if done.Load() {
			t.Error("the change was applied before it was checked")
		}
		h.operators.release <- struct{}{}
		for open := true; open; { // further checks: of the new version
			select {
			case <-h.operators.begun:
				h.operators.release <- struct{}{}
			case <-finished:
				open = false
			}
		}
		h.operators.begun = nil
		got := h.do("GET", path(f.ID), "").flag(200)
		if got.Name != "changed meanwhile" || !bytes.Contains(got.Filters, []byte("test/slow")) || !bytes.Contains(got.Filters, []byte(`"rollout_percentage":1`)) || got.Version != 3 {
			t.Errorf("got %+v with %s", got, got.Filters)
		}
	})
}

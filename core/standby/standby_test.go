package standby

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// away is a source of definitions that cannot be read.
type away struct{}

func (away) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	return eval.ProjectDefinitions{}, fault.New(fault.Unavailable, db.CodeUnavailable, "")
}

func (away) Revisions(context.Context) (map[int64]int64, error) {
	return nil, fault.New(fault.Unavailable, db.CodeUnavailable, "")
}

// started returns a service and its authentication with the snapshot c, started
// while the database is away.
func started(t *testing.T, c *content) (*Service, *Auth) {
	t.Helper()
	dir := t.TempDir()
	if err := writeFile(filepath.Join(dir, fileName), c); err != nil {
		t.Fatal(err)
	}
	d, err := db.OpenServer(t.Context(), db.Config{URL: "postgres://guidon@127.0.0.1:1/none"}, dir, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	accounts, err := auth.New(auth.DefaultConfig(), d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := NewService(DefaultConfig(), db.DataDir(dir), d, accounts, decide.NewLastKnown(away{}), zap.NewNop())
	return s, NewAuth(accounts, s)
}

func codeOf(err error) string {
	if f := fault.From(err); f != nil {
		return f.Code
	}
	return ""
}

// A key ends at its time also in the snapshot.
func TestKeysOfTheSnapshotExpire(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Microsecond)
	c := sample(now)
	c.PersonalKeys = []personalKey{
		{Digest: digestOf("phx_forever"), KeyID: 1, OrganizationID: "o"},
		{Digest: digestOf("phx_ends"), KeyID: 2, OrganizationID: "o", ExpiresAt: now.Add(time.Hour)},
		{Digest: digestOf("phs_ends"), KeyID: -2, OrganizationID: "o", ExpiresAt: now.Add(time.Hour), Secret: true},
	}
	s, a := started(t, c)
	for _, step := range []struct {
		at   time.Time
		key  string
		want string
	}{
		{now, "phx_forever", ""},
		{now, "phx_ends", ""},
		{now.Add(time.Hour - time.Microsecond), "phx_ends", ""},
		{now.Add(time.Hour), "phx_ends", auth.CodeExpired},
		{now.Add(time.Hour), "phs_ends", auth.CodeSecretExpired},
		{now.Add(time.Hour), "phx_forever", ""},
		{now, "phx_unknown", db.CodeUnavailable},
	} {
		s.now = func() time.Time { return step.at }
		p, err := a.PrincipalByKey(t.Context(), step.key)
		if codeOf(err) != step.want || (err == nil) != (p != nil && p.FromSnapshot) {
			t.Errorf("%s at %s: %+v, %v, want code %q", step.key, step.at, p, err, step.want)
		}
	}
}

// A snapshot that becomes too old while it is used is no longer used: keys are the
// only way to its flags, and they are no longer accepted.
func TestSnapshotBecomesTooOld(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	c := sample(now)
	c.PersonalKeys = []personalKey{{Digest: digestOf("phx_y"), KeyID: 1, OrganizationID: "o"}}
	s, a := started(t, c)
	for age, usable := range map[time.Duration]bool{0: true, 24 * time.Hour: true, 24*time.Hour + time.Second: false} {
		s.now = func() time.Time { return now.Add(age) }
		_, projectErr := a.ProjectByKey(t.Context(), "phc_x")
		_, principalErr := a.PrincipalByKey(t.Context(), "phx_y")
		status, ready := s.Status()
		if usable != (projectErr == nil) || usable != (principalErr == nil) || usable != ready {
			t.Errorf("age %s: %v, %v, %+v", age, projectErr, principalErr, status)
		}
		if !usable && (!fault.Is(projectErr, fault.Unavailable) || !strings.Contains(status.Message, "no snapshot")) {
			t.Errorf("age %s: %v, %+v", age, projectErr, status)
		}
	}
}

// The snapshot has the end of each key, and no revoked key.
func TestSnapshotReadsKeys(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		accounts, err := auth.New(auth.DefaultConfig(), d, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		first, err := accounts.Bootstrap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
		_, secret, err := accounts.CreatePersonalKey(t.Context(), auth.NewPersonalKey{UserID: first.User.ID, Label: "ci", Scopes: []string{"feature_flag:read"}, ExpiresAt: end})
		if err != nil {
			t.Fatal(err)
		}
		revoked, _, err := accounts.CreatePersonalKey(t.Context(), auth.NewPersonalKey{UserID: first.User.ID, Label: "old", Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := accounts.RevokePersonalKey(t.Context(), first.User.ID, revoked.ID); err != nil {
			t.Fatal(err)
		}
		keys, err := store{d}.personalKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]time.Time{}
		for _, k := range keys {
			got[k.Digest] = k.ExpiresAt
		}
		if len(got) != 2 || !got[digestOf(first.PersonalKey)].IsZero() || !got[digestOf(secret)].Equal(end) {
			t.Errorf("keys %v, want %s to end at %s", got, digestOf(secret), end)
		}
	})
}

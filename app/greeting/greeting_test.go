package greeting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app/greeting"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The link of a first run has the configured end, and a server without a console prints none.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	users, err := auth.New(auth.DefaultConfig(), d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := users.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(4 * time.Hour)
	links := greeting.Links{DB: d, Lifetime: 4 * time.Hour, URL: func() string { return "http://localhost:1" }}
	none := links.New(t.Context(), first.User.Email)
	links.Console = true
	link := links.New(t.Context(), first.User.Email)
	if !strings.HasPrefix(link.URL, "http://localhost:1/sign-in#link=gdl_") || link.End.Before(before.Add(-time.Second)) || link.End.After(time.Now().Add(4*time.Hour)) {
		t.Errorf("link %+v", link)
	}
	var out strings.Builder
	greeting.FirstRun(&out, "http://localhost:1", first, link)
	if !strings.Contains(out.String(), link.URL) || !strings.Contains(out.String(), "until "+link.End.UTC().Format("15:04 UTC")) {
		t.Errorf("greeting %s", out.String())
	}
	out.Reset()
	greeting.FirstRun(&out, "http://localhost:1", first, none)
	if strings.Contains(out.String(), "sign-in") || !strings.Contains(out.String(), first.PersonalKey) {
		t.Errorf("greeting without a link %s", out.String())
	}
}

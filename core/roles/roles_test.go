package roles_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/roles"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names            string
		postgres, shared bool
		want             string // part of the error; "" for none
	}{
		{"", false, false, ""},
		{"deliver process manage decide capture", false, false, ""}, // all
		{"decide", true, false, ""},
		{"decide", true, true, ""},
		{"decide", false, false, "needs Postgres"},
		{"decide manage", true, false, "journal.url"},
		{"capture process deliver", true, false, "journal.url"},
		{"capture decide", true, true, ""},
		{"manage process deliver", true, true, ""},
		{"capture", true, true, ""},
		{"process", true, true, "go together"},
		{"capture deliver", true, true, "go together"},
		{"decide,manage", true, true, `no role "decide,manage"`},
		{"write", true, true, `no role "write": use capture, decide, manage, process, deliver`},
	} {
		err := roles.Check(strings.Fields(c.names), c.postgres, c.shared)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, Postgres %v, shared %v: %v, want %q", c.names, c.postgres, c.shared, err, c.want)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names, want, parts string
		decideOnly         bool
	}{
		{"", "capture decide manage process deliver", "database ingestion journal", false},
		{"decide", "decide", "database", true},
		{"decide capture decide", "capture decide", "database journal", false},
		{"deliver process", "process deliver", "database ingestion journal", false},
	} {
		s, err := roles.New(strings.Fields(c.names))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Names(); strings.Join(got, " ") != c.want || s.DecideOnly() != c.decideOnly {
			t.Errorf("%q has the roles %v, decide only %v", c.names, got, s.DecideOnly())
		}
		for _, part := range []string{"database", "ingestion", "journal"} {
			if s.Watches(part) != slices.Contains(strings.Fields(c.parts), part) {
				t.Errorf("%q: %s is watched: %v", c.names, part, s.Watches(part))
			}
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	edge, err := roles.New([]string{"capture", "decide"})
	if err != nil {
		t.Fatal(err)
	}
	back, err := roles.New([]string{"manage", "process", "deliver"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path       string
		edge, back bool
	}{
		{"/", true, true}, {"/_readiness", true, true}, {"/openapi.yaml", true, true},
		{"/batch", true, false}, {"/i/v0/e", true, false}, {"/s", true, false},
		{"/decide", true, false}, {"/flags/definitions", true, false}, {"/ofrep/v1/evaluate/flags", true, false},
		{"/api/projects/:project_id/feature_flags/local_evaluation", true, false},
		{"/api/projects/:project_id/feature_flags", false, true}, {"/api/users/@me", false, true},
	} {
		for _, node := range []struct {
			name   string
			set    roles.Set
			serves bool
		}{{"edge", edge, c.edge}, {"back", back, c.back}} {
			err := node.set.Refuse(c.path)
			if (err == nil) != node.serves || err != nil && (!fault.Is(err, fault.Unavailable) || fault.From(err).Code != "role_missing") {
				t.Errorf("%s, %s: %v, want served %v", c.path, node.name, err, node.serves)
			}
		}
	}
	if err := (roles.Set{}).Refuse("/batch"); err != nil {
		t.Errorf("all roles: %v", err)
	}
	if err := edge.Refuse("/api/users/@me"); !strings.Contains(fault.From(err).Detail, "role manage") {
		t.Errorf("%v", err)
	}
}

// A server that only reads explains the errors of writes, also behind another fault. A
// missing right to read is an error of its own.
func TestMapError(t *testing.T) {
	t.Parallel()
	next := func(err error) error { return fmt.Errorf("next: %w", err) }
	reads, err := roles.New([]string{roles.Decide})
	if err != nil {
		t.Fatal(err)
	}
	for code, explained := range map[string]bool{"25006": true, "42501": false, "23505": false} {
		away := fault.New(fault.Unavailable, "database_unavailable", "Away.").Because(&pgconn.PgError{Code: code})
		if got := reads.MapError(next)(away); (fault.CodeOf(got) == roles.CodeMissing) != explained || !explained && !strings.HasPrefix(got.Error(), "next: ") {
			t.Errorf("%s: %v", code, got)
		}
		if got := (roles.Set{}).MapError(next)(away); !strings.HasPrefix(got.Error(), "next: ") {
			t.Errorf("%s, all roles: %v", code, got)
		}
	}
}

// Every route of the server has a role that fits who may call it: keys that clients have
// do not lead to management, and only pages of the server itself need no role.
func TestRoutesHaveRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../app/testdata/routes_access.txt")
	if err != nil {
		t.Fatal(err)
	}
	var free []string
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "public" {
			continue
		}
		needs := roles.ForPath(f[2])
		for _, r := range needs {
			counts[r]++
		}
		if len(needs) == 0 && !slices.Contains(free, f[2]) {
			free = append(free, f[2])
		}
		client := slices.Contains(f[3:], "project-key") || slices.Contains(f[3:], "secret-key")
		if client == slices.Contains(needs, roles.Manage) && !slices.Contains(f[3:], "open") {
			t.Errorf("%s %s is for clients: %v, and needs the role %v", f[1], f[2], client, needs)
		}
	}
	slices.Sort(free)
	if want := []string{"/", "/_health", "/_liveness", "/_preflight", "/_readiness", "/openapi.yaml"}; !slices.Equal(free, want) {
		t.Errorf("without a role: %v, want %v", free, want)
	}
	for _, r := range []string{roles.Capture, roles.Decide, roles.Manage} {
		if counts[r] < 10 {
			t.Errorf("%s has %d routes", r, counts[r])
		}
	}
}

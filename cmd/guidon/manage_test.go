package main_test

import (
	"bufio"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tool runs commands against a server without a context.
type tool struct{ *server }

// run runs a command with a personal key in the environment.
func (s tool) run(args ...string) (out string, code int) {
	cmd := s.command(args...)
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

func (s tool) command(args ...string) *exec.Cmd {
	cmd := exec.Command(bin, args...)
	cmd.Dir = s.dir
	cmd.Env = append(s.env(), "GUIDON_CONTEXTS="+filepath.Join(s.dir, "contexts.yaml"), "GUIDON_PERSONAL_KEY="+s.personal)
	return cmd
}

// expect runs a command and requires its exit code and parts of its output.
func (s tool) expect(t *testing.T, code int, line string, want ...string) string {
	t.Helper()
	out, got := s.run(strings.Fields(line)...)
	if got != code {
		t.Errorf("guidon %s: exit code %d, want %d\n%s", line, got, code, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("guidon %s: no %q in\n%s", line, text, out)
		}
	}
	return out
}

// capture sends an event and waits until it is stored.
func (s tool) capture(t *testing.T, event, id, properties string) {
	t.Helper()
	body := fmt.Sprintf(`{"api_key":%q,"event":%q,"distinct_id":%q,"properties":%s}`, s.project, event, id, properties)
	if status, err := s.post("/capture/", body); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	until(t, func() string {
		var page struct{ Results []any }
		s.get(t, "/api/projects/1/events/?event="+url.QueryEscape(event)+"&distinct_id="+id, &page)
		if len(page.Results) == 0 {
			return "the event is not stored"
		}
		return ""
	})
}

func TestManagementCommands(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.capture(t, "signup", "ada", `{"plan":"pro","$set":{"email":"ada@example.com"}}`)
	s.capture(t, "signup", "bob", `{"$set":{"email":"bob@example.com"}}`)

	t.Run("actions", func(t *testing.T) {
		s.expect(t, 0, "action create Signups --event signup --dry-run", "would make the action Signups", "it matches 2 of the newest 2 events")
		s.expect(t, 0, "action create Signups --event signup", "action 1 (Signups) is stored")
		s.expect(t, 0, "action list", "Signups", "signup")
		s.expect(t, 0, "action count Signups --from 7d", "2\n")
		s.expect(t, 0, "action count 1 --interval day --from 1d -o json", `"interval": "day"`)
		s.expect(t, 0, "action people Signups", "ada@example.com", "bob@example.com")
		s.expect(t, 0, "action people Signups -n 1 -o json", `"distinct_ids"`)
		s.expect(t, 0, "action preview --event other", "event is \"signup\", not exact \"other\"", "0 of 2 events match")
		s.expect(t, 2, "action edit Signups --event other", "it matches 2 events of the last three months; with the change, 0 of the newest 2 events; confirm with --yes")
		s.expect(t, 0, "action edit Signups --name Joined -y", "action 1 (Joined) is stored")
		s.expect(t, 3, "action get Signups", `no action has the name "Signups"`)
		s.expect(t, 0, "action get Joined", "name: Joined")
		s.expect(t, 0, "action delete Joined -y", "action 1 (Joined) is deleted")
		s.expect(t, 3, "action get 1", "is deleted")
	})
	t.Run("cohorts", func(t *testing.T) {
		s.expect(t, 0, "cohort create Ada -p email=ada@example.com", "cohort 1 (Ada) is stored")
		s.expect(t, 0, "cohort create Both --distinct-id ada --distinct-id bob")
		s.expect(t, 0, "cohort list", "dynamic", "static")
		if out := s.expect(t, 0, "cohort persons Ada", "ada@example.com"); strings.Contains(out, "bob") {
			t.Errorf("persons: %s", out)
		}
		s.expect(t, 0, "cohort persons Both", "ada@example.com", "bob@example.com")
		s.expect(t, 0, "cohort delete Both --dry-run", "would delete cohort Both (id 2): it has 2 persons")
		s.expect(t, 0, "cohort edit Both --description both -y")
		s.expect(t, 0, "cohort get Both -o json", `"description": "both"`)
		s.expect(t, 0, "cohort delete Both -y", "is deleted")
	})
	t.Run("places", func(t *testing.T) {
		for _, place := range []string{"", " --server " + s.url} { // the database, the server
			s.expect(t, 0, "organization show"+place, "My organization", "My project")
			s.expect(t, 0, "organization members"+place, "admin@localhost", "owner")
			s.expect(t, 0, "user list"+place, "admin@localhost")
			s.expect(t, 0, "user list -o json"+place, `"email": "admin@localhost"`)
			key := s.expect(t, 0, "key create --project 1"+place, "phc_")
			s.expect(t, 0, "key list --project 1"+place, strings.TrimSpace(key))
			s.expect(t, 0, "key list --user 1"+place, "First key")
			s.expect(t, 0, "event tail -n 5 -p plan=pro"+place, `"distinct_id":"ada"`)
			s.expect(t, 0, "event tail -n 5 --person bob -o table"+place, "signup  bob")
			s.expect(t, 0, "events tail -n 5 --event none"+place)
		}
		s.expect(t, 0, "key revoke --project 1 2 --yes --server "+s.url, "project key 2 is revoked")
		s.expect(t, 0, "key list --project 1", "revoked")
		s.expect(t, 0, "key create --project 1 --secret --expires 1d --server "+s.url, "phs_")
		s.expect(t, 0, "key rotate --project 1 --yes --server "+s.url, "phs_")
		s.expect(t, 0, "key rotate --project 1 1 --yes --server "+s.url, "phs_")
		s.expect(t, 1, "key list --user 2 --server "+s.url, "your own user only, 1")
		s.expect(t, 1, "event tail --person nobody", `no person has the distinct id "nobody"`)
		s.expect(t, 3, "event tail --person nobody --server "+s.url, `no person has the distinct id, uuid or number "nobody"`)
	})
	t.Run("persons", func(t *testing.T) {
		s.expect(t, 0, "person find ada", "ada@example.com")
		s.expect(t, 0, "person find -p email=bob@example.com -o json", `"bob"`)
		s.expect(t, 0, "flag create beta --rollout 100")
		out := s.expect(t, 0, "person show ada", `email: "ada@example.com"`, "beta = true  (Matched condition set 1)", "newest events (1):")
		uuid := out[strings.LastIndex(strings.TrimSpace(out), " ")+1:]
		s.expect(t, 0, "person show ada -o yaml", "flags:", "  beta:")
		s.expect(t, 0, "event trace "+uuid, "signup of ada: stored", "worker    done", "journal record")
		s.expect(t, 3, "event trace 01a20592-5c2a-7000-9e60-fa5c3483c663", "no trace of event")
		s.expect(t, 2, "person erase ada --with-events", "erase 1 person (ada@example.com) with 1 distinct id, and erase 1 event; confirm with --yes")
		s.expect(t, 0, "person erase ada ada --with-events -y", "(ada@example.com) is erased")
		s.expect(t, 3, "person show ada", `no person has the distinct id, uuid or number "ada"`)
		s.expect(t, 1, "person erase", "name persons, or a list with --file")
	})
}

// TestEventTailFollows reads events that are stored while it follows, from the database
// and from the server.
func TestEventTailFollows(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.capture(t, "before", "ada", `{}`)
	for _, place := range []string{"--local", "--server=" + s.url} {
		cmd := s.command("event", "tail", "-f", "-n", "1", "--event", "seen", "-o", "table", place)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := make(chan string, 100)
		go func() {
			defer close(lines)
			for in := bufio.NewScanner(out); in.Scan(); {
				lines <- in.Text()
			}
		}()
		id := "bob" + place[2:5]
		deadline := waitDeadline(t, patience)
		counts := map[string]int{}
		for n := 0; counts[id] == 0; n++ { // the tail may begin after the first event
			s.capture(t, "seen", fmt.Sprintf("%s-%d", id, n), `{}`)
			s.capture(t, "other", "carl", `{}`)
			select {
			case line := <-lines:
				if !strings.Contains(line, "seen  "+id) && !strings.Contains(line, "seen  boblo") {
					t.Errorf("%s: %s", place, line)
				}
				if strings.Contains(line, id) {
					counts[id]++
				}
			case <-time.After(time.Second):
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: none of %d events", place, n)
			}
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		seen := map[string]bool{}
		for line := range lines {
			if seen[line] {
				t.Errorf("%s: printed twice: %s", place, line)
			}
			seen[line] = true
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
}

package main_test

import (
	"regexp"
	"strings"
	"testing"
)

var inviteText = regexp.MustCompile(`guidon login (\S+) --invite (\S+)`)

func TestInvitationsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.expect(t, 0, "user invite grace@example.com --role admin --name Grace", "invitation of grace@example.com as admin")
	s.expect(t, 0, "user invites", "grace@example.com", "open")
	s.expect(t, 2, "user uninvite grace@example.com", "its token is refused; confirm with --yes")
	s.expect(t, 0, "user uninvite grace@example.com --yes", "is deleted")
	s.expect(t, 3, "user uninvite grace@example.com --yes", "no open invitation")

	found := inviteText.FindStringSubmatch(s.expect(t, 0, "user invite grace@example.com --role admin"))
	if found == nil || found[1] != s.url {
		t.Fatalf("no command to accept: %q", found)
	}
	id, token, _ := strings.Cut(found[2], ".")
	s.expect(t, 1, "login "+found[1]+" --invite "+id+".phi_wrong", "invalid_invite")
	s.expect(t, 0, "login "+found[1]+" --name grace --invite "+found[2], "as context grace, project 1")
	s.expect(t, 1, "login "+found[1]+" --name again --invite "+id+"."+token, "invalid_invite")

	asGrace := func(code int, line, want string) { // with the key of the context only
		t.Helper()
		cmd := s.command(strings.Fields(line)...)
		cmd.Env = append(cmd.Env, "GUIDON_PERSONAL_KEY=")
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			t.Errorf("guidon %s as grace: exit code %d, want %d with %q\n%s", line, cmd.ProcessState.ExitCode(), code, want, out)
		}
	}
	asGrace(0, "user list --context grace", "grace@example.com")
	asGrace(4, "user role admin@localhost member --yes --context grace", "up to your own level")
	s.expect(t, 2, "user role grace@example.com member", "who is admin, member of the organization; confirm with --yes")
	s.expect(t, 0, "user role grace@example.com member --yes", "grace@example.com is member")
	s.expect(t, 0, "user role grace@example.com owner", "grace@example.com is owner")
	s.expect(t, 0, "user remove grace@example.com --dry-run", "would remove grace@example.com (owner)")
	s.expect(t, 0, "user remove grace@example.com --yes", "is removed")
	s.expect(t, 3, "user remove grace@example.com --yes", "no member")
	asGrace(4, "flag list --context grace", "invalid")
	until(t, func() string { // entries are in the export when they are sealed
		out := s.expect(t, 0, "audit export")
		for _, want := range []string{`"scope":"OrganizationInvite"`, `"activity":"accepted"`} {
			if !strings.Contains(out, want) {
				return "no " + want + " in\n" + out
			}
		}
		return ""
	})
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	s.expect(t, 0, "user invite local@example.com --local", "guidon login "+s.url+" --invite ")
}

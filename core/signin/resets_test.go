package signin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/email/emailtest"
	"github.com/guidonhq/guidon/core/signin"
)

// mailPlace is a place whose e-mails go to the server.
func mailPlace(t *testing.T, server *emailtest.Server, cfg signin.Config) *place {
	t.Helper()
	return mailPlaceOn(t, dbtest.SQLite(t), server, cfg)
}

// mailPlaceOn is mailPlace on a database.
func mailPlaceOn(t *testing.T, d *db.DB, server *emailtest.Server, cfg signin.Config) *place {
	t.Helper()
	c := email.DefaultConfig()
	c.Host, c.Port, c.TLS, c.From = "127.0.0.1", server.Port, email.NoTLS, "guidon@example.com"
	sender, err := email.New(c, "https://flags.example.com", zap.NewNop(), nil)
	check(t, err)
	check(t, sender.Start(t.Context()))
	t.Cleanup(func() { _ = sender.Stop(context.Background()) })
	return newMailPlace(t, d, cfg, nil, sender)
}

func (p *place) askReset(t *testing.T, address string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": address})
	check(t, err)
	return p.browser().send(t, http.MethodPost, "/api/session/password_reset", string(body))
}

// A link for a new password is sent to a user only, works once, and points to the configured
// address whatever the request names.
func TestAPasswordIsResetByEmail(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	p := mailPlace(t, server, signin.DefaultConfig())
	for _, address := range []string{"nobody@example.com", " " + strings.ToUpper(admin) + " "} {
		if a := p.askReset(t, address); a.status != http.StatusNoContent {
			t.Fatalf("%s: %d %+v", address, a.status, a.body)
		}
	}
	m := server.Wait(t, 1)[0]
	token, ok := strings.CutPrefix(m.Link(), "https://flags.example.com/reset-password#token=")
	if !ok || m.To[0] != admin {
		t.Fatalf("to %s: %s", m.To, m.Text)
	}
	for i, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if a := p.browser().send(t, http.MethodPost, "/api/session/password", `{"token": "`+token+`", "password": "`+secret+`"}`); a.status != want {
			t.Errorf("use %d of the link: %d %+v", i, a.status, a.body)
		}
	}
	if n := server.Count(); n != 1 {
		t.Errorf("%d e-mails", n)
	}
}

// The limit of an address is the same with and without a user.
func TestRequestsForPasswordsAreLimited(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	p := mailPlace(t, server, signin.DefaultConfig())
	for _, address := range []string{admin, "nobody@example.com"} {
		for i, want := range []int{http.StatusNoContent, http.StatusNoContent, http.StatusNoContent, http.StatusTooManyRequests} {
			if a := p.askReset(t, address); a.status != want {
				t.Errorf("request %d for %s: %d", i, address, a.status)
			}
		}
	}
	for _, bad := range []string{"no address", "a@b.c\r\nBcc: eve@example.com", ""} {
		if a := p.askReset(t, bad); a.status != http.StatusBadRequest {
			t.Errorf("%q: %d", bad, a.status)
		}
	}
	server.Wait(t, 3)
	off := signin.DefaultConfig()
	off.Password = false
	if a := mailPlace(t, server, off).askReset(t, admin); a.status != http.StatusConflict || a.body.Code != "password_off" {
		t.Errorf("without passwords: %d %s", a.status, a.body.Code)
	}
	if a := newPlace(t, dbtest.SQLite(t), signin.DefaultConfig(), nil).askReset(t, admin); a.status != http.StatusConflict || a.body.Code != "email_off" {
		t.Errorf("without e-mail: %d %s", a.status, a.body.Code)
	}
}

// logged returns the entries of an activity that admins of the first organization see, and
// with server those that operators see, as "item name reason count".
func (p *place) logged(t *testing.T, what string, server bool) []string {
	t.Helper()
	p.counter.Flush(t.Context())
	owner, err := p.users.PrincipalByKey(t.Context(), p.first.PersonalKey)
	check(t, err)
	all, _, err := activity.NewLog(p.db).Find(t.Context(), activity.Query{OrganizationID: owner.OrganizationID, Server: server, Activity: what, Limit: 100})
	check(t, err)
	var out []string
	for _, e := range all {
		text := string(e.Scope) + " " + e.ItemID + " " + e.Detail.Name
		if e.Detail.Trigger != nil {
			text += fmt.Sprint(" ", e.Detail.Trigger.JobID, " ", e.Detail.Trigger.Payload["count"])
		}
		if raw, err := json.Marshal(e); err != nil || strings.Contains(string(raw), "gdl_") || strings.Contains(string(raw), "token") {
			t.Errorf("entry %s, %v", raw, err)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// Requests for a new password are in the log of the organization of the user, those for other
// addresses and those past a limit in that of the server, counted, without the address.
func TestRequestsForPasswordsAreInTheLog(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	p := mailPlace(t, server, signin.DefaultConfig())
	for _, address := range []string{admin, admin, "nobody@example.com", admin, admin, admin, "someone@example.com"} {
		p.askReset(t, address)
	}
	server.Wait(t, 3)
	var own, all []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // the others make no e-mail
		own, all = p.logged(t, activity.ResetRequested, false), p.logged(t, activity.ResetRequested, true)
		if n := sumOf(t, all); n == 7 || time.Now().After(end) {
			break
		}
	}
	if n := sumOf(t, own); n != 3 || !strings.HasPrefix(own[0], "User 1 "+admin+"  ") {
		t.Errorf("of the organization: %q", own)
	}
	if text := strings.Join(all, "\n"); sumOf(t, all) != 7 || !strings.Contains(text, "User   throttled 2") || strings.Contains(text, "nobody") {
		t.Errorf("of the server: %q", all)
	}
	if got := p.logged(t, activity.SignInFailed, true); len(got) != 0 || p.failed.Load() != 0 {
		t.Errorf("failed sign-ins: %q", got)
	}
}

// sumOf adds the counts of entries.
func sumOf(t *testing.T, entries []string) (sum int) {
	t.Helper()
	for _, e := range entries {
		n, err := strconv.Atoi(e[strings.LastIndexByte(e, ' ')+1:])
		check(t, err)
		sum += n
	}
	return sum
}

// E-mails that are given up are in the log: the kind and the user, and never the link.
func TestFailedEmailsAreInTheLog(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		server := emailtest.Listen(t, emailtest.Options{Refuse: func(string) error {
			return &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
		}})
		p := mailPlaceOn(t, d, server, signin.DefaultConfig())
		owner, err := p.users.PrincipalByKey(t.Context(), p.first.PersonalKey)
		check(t, err)
		i, _, err := p.invites.Create(t.Context(), owner, invitation.New{Email: "grace@example.com"})
		check(t, err)
		p.askReset(t, admin)
		want := []string{"OrganizationInvite " + i.ID + " grace@example.com", "User 1 " + admin + " reset 1"}
		var got []string
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && !slices.Equal(got, want); time.Sleep(5 * time.Millisecond) {
			got = p.logged(t, activity.EmailFailed, false)
		}
		if !slices.Equal(got, want) {
			t.Errorf("entries %q, want %q", got, want)
		}
	})
}

// A server that stops stores that it gave up the e-mail of an invitation, before Stop returns.
func TestStoppingGivesUpInvitations(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{Refuse: func(string) error {
		return &smtp.SMTPError{Code: 451, Message: "later"}
	}})
	c := email.DefaultConfig()
	c.Host, c.Port, c.TLS, c.From = "127.0.0.1", server.Port, email.NoTLS, "guidon@example.com"
	sender, err := email.New(c, "https://flags.example.com", zap.NewNop(), nil)
	check(t, err)
	check(t, sender.Start(t.Context()))
	p := newMailPlace(t, dbtest.SQLite(t), signin.DefaultConfig(), nil, sender)
	owner, err := p.users.PrincipalByKey(t.Context(), p.first.PersonalKey)
	check(t, err)
	_, _, err = p.invites.Create(t.Context(), owner, invitation.New{Email: "grace@example.com"})
	check(t, err)
	check(t, sender.Stop(context.Background()))
	all, err := p.invites.List(t.Context(), owner.OrganizationID)
	check(t, err)
	if len(all) != 1 || all[0].EmailState != invitation.EmailFailed {
		t.Errorf("after the stop: %+v", all)
	}
}

// An invitation has the state of its e-mail, and works by the link in it.
func TestInvitationsByEmail(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	p := mailPlace(t, server, signin.DefaultConfig())
	owner, err := p.users.PrincipalByKey(t.Context(), p.first.PersonalKey)
	check(t, err)
	i, token, err := p.invites.Create(t.Context(), owner, invitation.New{Email: "grace@example.com", FirstName: "<b>Grace"})
	check(t, err)
	if i.EmailState != invitation.EmailQueued {
		t.Errorf("state %s", i.EmailState)
	}
	m := server.Wait(t, 1)[0]
	if m.Link() != "https://flags.example.com/invitation#id="+i.ID+"&token="+token || strings.Contains(m.HTML, "<b>") {
		t.Errorf("message %s", m.HTML)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		all, err := p.invites.List(t.Context(), owner.OrganizationID)
		check(t, err)
		if len(all) == 1 && all[0].EmailState == invitation.EmailSent {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("invitations %+v", all)
		}
	}
	_, err = p.invites.Accept(t.Context(), i.ID, token, "")
	check(t, err)
}

// An admin who invites an address again and again does not fill its mailbox. The invitations
// are made.
func TestInvitationsToOneAddressAreLimited(t *testing.T) {
	t.Parallel()
	server := emailtest.Listen(t, emailtest.Options{})
	p := mailPlace(t, server, signin.DefaultConfig())
	owner, err := p.users.PrincipalByKey(t.Context(), p.first.PersonalKey)
	check(t, err)
	states := map[string]int{}
	for range 6 {
		i, _, err := p.invites.Create(t.Context(), owner, invitation.New{Email: "Grace@example.com"})
		check(t, err)
		states[i.EmailState]++
	}
	if states[invitation.EmailQueued] != 3 || states[invitation.EmailFailed] != 3 {
		t.Errorf("states %v", states)
	}
	all, err := p.invites.List(t.Context(), owner.OrganizationID)
	check(t, err)
	if len(all) != 1 || all[0].EmailState != invitation.EmailFailed {
		t.Errorf("invitations %+v", all)
	}
	i, _, err := p.invites.Create(t.Context(), owner, invitation.New{Email: "ada@example.com"})
	check(t, err)
	if i.EmailState != invitation.EmailQueued {
		t.Errorf("another address: %s", i.EmailState)
	}
	server.Wait(t, 4)
}

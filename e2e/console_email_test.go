//go:build e2e

package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/guidonhq/guidon/core/email/emailtest"
)

// TestConsoleEmail asks for a new password and accepts an invitation in Chromium, both by
// the link in an e-mail, and sees what became of the e-mails of invitations.
func TestConsoleEmail(t *testing.T) { onDatabases(t, testConsoleEmail) }

func testConsoleEmail(t *testing.T, database []string) {
	var back atomic.Bool // the mailbox of later@ takes messages
	mail := emailtest.Listen(t, emailtest.Options{STARTTLS: true, Refuse: func(address string) error {
		switch {
		case strings.HasPrefix(address, "gone@"):
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
		case strings.HasPrefix(address, "later@") && !back.Load():
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	post := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			back.Store(true)
			return
		}
		number, err := strconv.Atoi(r.URL.Query().Get("number"))
		m := mail.Wait(t, number)[number-1]
		if err = errors.Join(err, json.NewEncoder(w).Encode(map[string]any{"to": m.To, "subject": m.Subject(), "text": m.Text, "html": m.HTML, "link": m.Link()})); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(post.Close)
	s := start(t, append([]string{
		"GUIDON_HTTP_SITE_URL=" + itsURL, "GUIDON_EMAIL_HOST=127.0.0.1", "GUIDON_EMAIL_PORT=" + strconv.Itoa(mail.Port), "GUIDON_EMAIL_CA_FILE=" + mail.CAFile,
		"GUIDON_EMAIL_FROM=Guidon <guidon@example.com>", "GUIDON_EMAIL_USERNAME=" + emailtest.User, "GUIDON_EMAIL_PASSWORD=" + emailtest.Password,
	}, database...)...)
	inBrowser(t, s, "email.mjs", map[string]any{"post": post.URL})
	var members struct {
		Results []struct{ User struct{ Email string } }
	}
	s.do(t, http.MethodGet, "/api/organizations/@current/members/", nil, &members, http.StatusOK)
	if len(members.Results) != 2 {
		t.Errorf("members %+v; want the first user and the one that accepted an invitation", members.Results)
	}
}

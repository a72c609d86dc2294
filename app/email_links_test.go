package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/console"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/email/emailtest"
)

// Links in e-mails and in the answers to the admin who invites lead to the configured URL of
// the console, whatever the request names.
func TestLinksOfEmailsLeadToTheConsole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*app.Config)
		site   string
	}{
		"with the clients": {func(c *app.Config) { c.HTTP.SiteURL = "https://flags.example.com/guidon/" }, "https://flags.example.com"},
		"on its own": {func(c *app.Config) {
			c.HTTP.ConsoleAddress, c.HTTP.SiteURL, c.HTTP.ConsoleURL = "127.0.0.1:0", "https://flags.example.com", "https://console.example.com/"
		}, "https://console.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mail := emailtest.Listen(t, emailtest.Options{})
			s := serve(t, c.change, func(cfg *app.Config) {
				cfg.Email.Host, cfg.Email.Port, cfg.Email.TLS, cfg.Email.From = "127.0.0.1", mail.Port, email.NoTLS, "guidon@example.com"
			})
			var made struct {
				ID         string `json:"id"`
				Token      string `json:"token"`
				ConsoleURL string `json:"console_url"`
			}
			if err := json.Unmarshal([]byte(s.write(t, http.MethodPost, s.URL+"/api/organizations/@current/invites/", `{"target_email":"grace@example.com"}`)), &made); err != nil {
				t.Fatal(err)
			}
			page := "/invitation#id=" + made.ID + "&token=" + made.Token
			if got := mail.Wait(t, 1)[0].Link(); got != c.site+page || made.Token == "" {
				t.Errorf("the e-mail leads to %s, want %s", got, c.site+page)
			}
			want := c.site + page
			if assets, err := console.Built(); err != nil || !assets.Present() {
				want = "" // it is in answers only if this build has a console
			}
			if made.ConsoleURL != want {
				t.Errorf("the answer leads to %q, want %q", made.ConsoleURL, want)
			}
			res, err := http.Post(s.ConsoleURL()+"/api/session/password_reset", "application/json", strings.NewReader(`{"email":"admin@localhost"}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusNoContent {
				t.Fatalf("reset: %d", res.StatusCode)
			}
			all := mail.Wait(t, 2)
			if got := all[1].Link(); !strings.HasPrefix(got, c.site+"/reset-password#token=") {
				t.Errorf("the e-mail leads to %s", got)
			}
		})
	}
}

package signin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

const (
	secret = "correct horse battery"
	admin  = "admin@localhost"
)

// place is a server on a database with the accounts of a first start.
type place struct {
	*signin.Service
	db       *db.DB
	users    *auth.Service
	sessions *sessions.Service
	invites  *invitation.Service
	first    *auth.Credentials
	counter  *activity.Counter
	failed   atomic.Int64
	url      string
}

// AddKey implements signin.Counter.
func (p *place) AddKey(f web.FailedKey) {
	p.failed.Add(1)
	p.counter.AddKey(f)
}

// Add implements signin.Counter.
func (p *place) Add(k activity.Counted, agent string) { p.counter.Add(k, agent) }

func run(t *testing.T, fn func(t *testing.T, p *place)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		fn(t, newPlace(t, d, signin.DefaultConfig(), nil))
	})
}

// newPlace returns another node on d. change changes the settings of HTTP; it may be nil.
func newPlace(t *testing.T, d *db.DB, cfg signin.Config, change func(*web.Config)) *place {
	t.Helper()
	return newMailPlace(t, d, cfg, change, nil)
}

// newMailPlace is newPlace with e-mail.
func newMailPlace(t *testing.T, d *db.DB, cfg signin.Config, change func(*web.Config), mail *email.Sender) *place {
	t.Helper()
	p := &place{db: d, counter: activity.NewCounter(activity.NewLog(d), zap.NewNop())}
	var err error
	p.users, err = auth.New(auth.DefaultConfig(), d, zap.NewNop(), nil)
	check(t, err)
	check(t, p.users.Start(t.Context()))
	t.Cleanup(func() { _ = p.users.Stop(t.Context()) })
	p.first, err = p.users.Bootstrap(t.Context())
	check(t, err)
	audit := activity.NewAudit(d)
	p.sessions = sessions.New(cfg.Config, auth.DefaultConfig().PrincipalTTL, d, p.users, zap.NewNop())
	p.invites = invitation.NewService(d, p.users, audit, mail, zap.NewNop())
	p.Service, err = signin.New(cfg, d, p.users, p.sessions, p.invites, audit, mail, p, zap.NewNop(), nil)
	check(t, err)
	settings := webtest.Config()
	if change != nil {
		change(&settings)
	}
	s, err := web.New(settings, p.users, zap.NewNop(), nil)
	check(t, err)
	s.UseSessions(p.sessions)
	s.Mount(signin.NewHTTP(p.Service), accounts.NewHTTP(p.users, nil, audit), invitation.NewHTTP(p.invites, true))
	check(t, s.Start(t.Context()))
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	p.url = s.URL()
	return p
}

// browser is a client with a cookie and a CSRF token.
type browser struct {
	place  *place
	cookie *http.Cookie
	csrf   string
	header http.Header // of each request
}

func (p *place) browser() *browser { return &browser{place: p, header: http.Header{}} }

type answer struct {
	status int
	header http.Header
	cookie *http.Cookie // that was set, or nil
	body   struct {
		CSRF    string `json:"csrf_token"`
		Session *struct {
			ID     int64
			Method string
		}
		HasPassword bool `json:"has_password"`
		User        struct{ Email string }
		Code, Attr  string
		Count       int
		Results     []struct {
			ID      int64
			Current bool
		}
	}
	text string
}

func (b *browser) send(t *testing.T, method, path, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.place.url+path, strings.NewReader(body))
	check(t, err)
	r.Header = b.header.Clone()
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.csrf != "" {
		r.Header.Set("X-CSRF-Token", b.csrf)
	}
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	check(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check(t, err)
	out := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, "guidon_session") {
			out.cookie = c
		}
	}
	if len(bytes.TrimSpace(text)) > 0 {
		check(t, json.Unmarshal(text, &out.body))
	}
	return out
}

// want sends a request and fails the test for another status or, if code is given, another code.
func (b *browser) want(t *testing.T, status int, code, method, path, body string) answer {
	t.Helper()
	a := b.send(t, method, path, body)
	if a.status != status || code != "" && a.body.Code != code {
		t.Fatalf("%s %s: %d %s, want %d %s", method, path, a.status, a.text, status, code)
	}
	return a
}

// signIn sends a request that signs in, and keeps the session.
func (b *browser) signIn(t *testing.T, path, body string) answer {
	t.Helper()
	a := b.want(t, 200, "", "POST", path, body)
	if a.cookie == nil || a.body.CSRF == "" || a.body.Session == nil {
		t.Fatalf("no session: %s, cookie %v", a.text, a.cookie)
	}
	b.cookie, b.csrf = &http.Cookie{Name: a.cookie.Name, Value: a.cookie.Value}, a.body.CSRF
	return a
}

func (p *place) link(t *testing.T, email string, reset bool) string {
	t.Helper()
	token, _, err := p.NewLink(t.Context(), email, reset)
	check(t, err)
	return `{"token":"` + token + `"}`
}

// withLink returns a browser that has signed in.
func (p *place) withLink(t *testing.T, email string) *browser {
	t.Helper()
	b := p.browser()
	b.signIn(t, "/api/session/link", p.link(t, email, false))
	return b
}

func (p *place) setPassword(t *testing.T, email string) {
	t.Helper()
	token, _, err := p.NewLink(t.Context(), email, true)
	check(t, err)
	p.browser().signIn(t, "/api/session/password", `{"token":"`+token+`","password":"`+secret+`"}`)
}

// entries counts entries of the activity log.
func (p *place) entries(t *testing.T, done string) int64 {
	t.Helper()
	n, err := p.db.Read(t.Context()).NewSelect().Table("activity_log").Where("activity = ?", done).Count(t.Context())
	check(t, err)
	return n
}

func TestLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		link := p.link(t, admin, false)
		var ok, refused atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				switch a := p.browser().send(t, "POST", "/api/session/link", link); {
				case a.status == 200:
					ok.Add(1)
				case a.status == 401 && a.body.Code == "invalid_link":
					refused.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.text)
				}
			})
		}
		all.Wait()
		if ok.Load() != 1 || refused.Load() != 7 {
			t.Errorf("%d of 8 concurrent uses of a link signed in, %d were refused", ok.Load(), refused.Load())
		}
		b := p.withLink(t, admin)
		a := b.want(t, 200, "", "GET", "/api/session", "")
		if a.body.User.Email != admin || a.body.Session.Method != "link" || a.body.CSRF != b.csrf || a.body.HasPassword {
			t.Errorf("session %s", a.text)
		}
		b.want(t, 200, "", "PATCH", "/api/users/@me/", `{"first_name":"Ada"}`)
		p.browser().want(t, 401, "invalid_link", "POST", "/api/session/link", `{"token":"gdl_wrong"}`)
		p.browser().want(t, 401, "invalid_link", "POST", "/api/session/link", p.link(t, admin, true)) // a reset link chooses a password
		if p.failed.Load() == 0 {
			t.Error("refused links are not in the activity log")
		}
	})
}

func TestPassword(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		login := `{"email":" Admin@localhost ","password":"` + secret + `"}`
		b := p.browser()
		none := b.want(t, 401, "invalid_credentials", "POST", "/api/session", login)
		other := p.withLink(t, admin)
		b = p.withLink(t, admin)
		b.want(t, 400, "too_short", "PUT", "/api/users/@me/password", `{"password":"short"}`)
		b.want(t, 400, "too_common", "PUT", "/api/users/@me/password", `{"password":"Password123!"}`)
		b.want(t, 204, "", "PUT", "/api/users/@me/password", `{"password":"`+secret+`"}`)
		other.want(t, 401, "session_invalid", "GET", "/api/session", "") // other sessions end
		b.want(t, 200, "", "GET", "/api/session", "")
		b.want(t, 400, "invalid_password", "PUT", "/api/users/@me/password", `{"password":"another good one","current_password":"x"}`)

		wrong := p.browser().want(t, 401, "invalid_credentials", "POST", "/api/session", `{"email":"admin@localhost","password":"wrong"}`)
		unknown := p.browser().want(t, 401, "invalid_credentials", "POST", "/api/session", `{"email":"nobody@localhost","password":"wrong"}`)
		if wrong.text != unknown.text || wrong.text != none.text {
			t.Errorf("answers differ: %s %s %s", wrong.text, unknown.text, none.text)
		}
		a := p.browser().signIn(t, "/api/session", login)
		if a.body.Session.Method != "password" || !a.body.HasPassword {
			t.Errorf("session %s", a.text)
		}
		key := p.browser()
		key.header.Set("Authorization", "Bearer "+p.first.PersonalKey)
		key.want(t, 409, "session_required", "PUT", "/api/users/@me/password", `{"password":"another good one"}`)
	})
}

func TestResetLinkEndsSessions(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		before := p.withLink(t, admin)
		unused := p.link(t, admin, false)
		p.setPassword(t, admin)
		if a := before.want(t, 401, "session_invalid", "GET", "/api/users/@me/sessions/", ""); a.cookie != nil {
			t.Errorf("a refused request sets the cookie %v, maybe over that of a newer session", a.cookie)
		}
		if a := before.want(t, 401, "session_invalid", "GET", "/api/session", ""); a.cookie == nil || a.cookie.Value != "" {
			t.Errorf("cookie %v; want it removed where the console asks who is signed in", a.cookie)
		}
		p.browser().want(t, 401, "invalid_link", "POST", "/api/session/link", unused)
		p.browser().signIn(t, "/api/session", `{"email":"admin@localhost","password":"`+secret+`"}`)
	})
}

// A request with the cookie that another site makes the browser send changes nothing.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		b := p.withLink(t, admin)
		const path, body = "/api/users/@me/", `{"first_name":"Eve"}`
		token := b.csrf
		for _, wrong := range []string{"", "x", p.withLink(t, admin).csrf} {
			b.csrf = wrong
			b.want(t, 403, "csrf_failed", "PATCH", path, body)
			b.want(t, 403, "csrf_failed", "DELETE", "/api/session", "")
		}
		b.csrf = token
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			b.header = http.Header{name: {value}}
			b.want(t, 403, "cross_origin", "PATCH", path, body)
			p.browserWith(b.header).want(t, 403, "cross_origin", "POST", "/api/session", `{"email":"a@b.c","password":"x"}`)
		}
		b.header = http.Header{"Sec-Fetch-Site": {"same-site"}}
		b.want(t, 403, "cross_origin", "PATCH", path, body)
		b.header = http.Header{"Origin": {p.url}, "Sec-Fetch-Site": {"same-origin"}}
		b.want(t, 200, "", "PATCH", path, `{"first_name":"Ada"}`)

		// A form of another site cannot sign a browser in to the account of an attacker.
		form := p.browserWith(http.Header{"Content-Type": {"text/plain"}})
		form.want(t, 415, "unsupported_media_type", "POST", "/api/session/link", p.link(t, admin, false))

		// Answers cannot be read by pages of other origins.
		b.header = http.Header{"Origin": {"https://evil.example"}}
		for _, path := range []string{"/api/session", "/api/session/methods", "/api/users/@me/"} {
			a := b.want(t, 200, "", "GET", path, "")
			if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Access-Control-Allow-Credentials") != "" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", path, a.header)
			}
		}
	})
}

func (p *place) browserWith(h http.Header) *browser { return &browser{place: p, header: h} }

// A session that an attacker has put into the browser is not the one after the sign-in.
func TestSignInMakesANewSession(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		attacker := p.withLink(t, admin)
		fixed := attacker.cookie.Value
		victim := &browser{place: p, cookie: attacker.cookie, header: http.Header{}}
		a := victim.signIn(t, "/api/session/link", p.link(t, admin, false))
		if a.cookie.Value == fixed {
			t.Error("the sign-in kept the token")
		}
		attacker.want(t, 401, "session_invalid", "GET", "/api/session", "")
		made := &browser{place: p, cookie: &http.Cookie{Name: "guidon_session", Value: "gds_chosen"}, header: http.Header{}}
		if a := made.signIn(t, "/api/session/link", p.link(t, admin, false)); a.cookie.Value == "gds_chosen" {
			t.Error("the sign-in took the token of the browser")
		}
	})
}

func TestCookieFlags(t *testing.T) {
	t.Parallel()
	p := newPlace(t, dbtest.SQLite(t), signin.DefaultConfig(), nil)
	plain := p.browser().signIn(t, "/api/session/link", p.link(t, admin, false)).cookie
	if plain.Name != "guidon_session" || !plain.HttpOnly || plain.Secure || plain.SameSite != http.SameSiteStrictMode || plain.Path != "/" || plain.Domain != "" {
		t.Errorf("over HTTP: %+v", plain)
	}
	if left := time.Until(plain.Expires); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("the cookie ends in %s", left)
	}
	b := p.browserWith(http.Header{"X-Forwarded-Proto": {"https"}})
	secure := b.signIn(t, "/api/session/link", p.link(t, admin, false)).cookie
	if secure.Name != "__Host-guidon_session" || !secure.HttpOnly || !secure.Secure || secure.SameSite != http.SameSiteStrictMode || secure.Path != "/" || secure.Domain != "" {
		t.Errorf("behind a proxy with TLS: %+v", secure)
	}
	b.want(t, 200, "", "GET", "/api/session", "")
	b.cookie.Name = "guidon_session" // another host of the domain can set this one
	b.want(t, 401, "not_authenticated", "GET", "/api/session", "")

	q := newPlace(t, dbtest.SQLite(t), signin.DefaultConfig(), func(c *web.Config) { c.SiteURL = "https://flags.example.com" })
	if c := q.browser().signIn(t, "/api/session/link", q.link(t, admin, false)).cookie; c.Name != "__Host-guidon_session" || !c.Secure {
		t.Errorf("with a site_url of https: %+v", c)
	}
}

// Guesses are bounded for an account and for an address. Others go on.
func TestGuessesAreThrottled(t *testing.T) {
	t.Parallel()
	cfg := signin.DefaultConfig()
	cfg.AccountRate.PerSecond, cfg.AddressRate.PerSecond = 0.0001, 0.0001 // none comes back during the test
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, cfg, nil)
		p.setPassword(t, admin)
		guess := func(client, email string) int {
			a := p.browserWith(http.Header{"X-Forwarded-For": {client}}).send(t, "POST", "/api/session", `{"email":"`+email+`","password":"wrong guess"}`)
			if a.status == 429 && (a.body.Code != "throttled" || a.header.Get("Retry-After") == "") {
				t.Errorf("refused with %s, Retry-After %q", a.text, a.header.Get("Retry-After"))
			}
			return a.status
		}
		count := map[int]int{}
		for range 14 {
			count[guess("203.0.113.1", admin)]++
		}
		if count[401] != cfg.AccountRate.Burst || count[429] != 14-cfg.AccountRate.Burst {
			t.Errorf("guesses for one account: %v", count)
		}
		count = map[int]int{}
		for i := range 40 {
			count[guess("203.0.113.2", string(rune('a'+i%26))+string(rune('a'+i/26))+"@example.com")]++
		}
		if count[401] != cfg.AddressRate.Burst || count[429] != 40-cfg.AddressRate.Burst {
			t.Errorf("guesses of one address: %v", count)
		}
		right := p.browserWith(http.Header{"X-Forwarded-For": {"203.0.113.3"}})
		right.signIn(t, "/api/session", `{"email":"admin@localhost","password":"`+secret+`"}`)
	})
}

// A session that one node revokes is refused at once by that node, and by others within the
// interval in which they look for changes of accounts.
func TestRevokedSessionEndsOnOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		one := newPlace(t, d, signin.DefaultConfig(), nil)
		two := newPlace(t, d, signin.DefaultConfig(), nil)
		b := one.withLink(t, admin)
		there := &browser{place: two, cookie: b.cookie, csrf: b.csrf, header: http.Header{}}
		there.want(t, 200, "", "GET", "/api/session", "")
		b.want(t, 204, "", "DELETE", "/api/session", "")
		b.want(t, 401, "session_invalid", "GET", "/api/session", "")
		begin := time.Now()
		for there.send(t, "GET", "/api/session", "").status == 200 {
			if time.Since(begin) > 30*time.Second {
				t.Fatal("another node accepts the session 30 s after its end")
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("the other node refused after %s", time.Since(begin).Round(time.Millisecond))
		if a := there.want(t, 401, "session_invalid", "GET", "/api/session", ""); a.cookie == nil || a.cookie.Value != "" {
			t.Errorf("the cookie of a revoked session is kept: %v", a.cookie)
		}
	})
}

func TestSessionsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		_, err := p.users.CreateUser(t.Context(), auth.NewUser{Email: "member@example.com", OrganizationID: p.first.Organization.ID})
		check(t, err)
		_, err = p.users.CreateUser(t.Context(), auth.NewUser{Email: "second@example.com", OrganizationID: p.first.Organization.ID, Level: auth.LevelAdmin})
		check(t, err)
		owner, owner2, member, second := p.withLink(t, admin), p.withLink(t, admin), p.withLink(t, "member@example.com"), p.withLink(t, "second@example.com")

		own := owner.want(t, 200, "", "GET", "/api/users/@me/sessions/", "")
		if own.body.Count != 2 || own.body.Results[0].Current == own.body.Results[1].Current {
			t.Errorf("own sessions %s", own.text)
		}
		member.want(t, 403, "permission_denied", "GET", "/api/organizations/@current/sessions/", "")
		all := second.want(t, 200, "", "GET", "/api/organizations/@current/sessions/", "")
		if all.body.Count != 4 {
			t.Errorf("sessions of the organization: %s", all.text)
		}
		id := func(b *browser) string {
			return jsonNumber(b.want(t, 200, "", "GET", "/api/session", "").body.Session.ID)
		}
		member.want(t, 404, "", "DELETE", "/api/users/@me/sessions/"+id(owner)+"/", "")
		second.want(t, 403, "permission_denied", "DELETE", "/api/organizations/@current/sessions/"+id(owner)+"/", "")
		second.want(t, 204, "", "DELETE", "/api/organizations/@current/sessions/"+id(member)+"/", "")
		member.want(t, 401, "session_invalid", "GET", "/api/session", "")
		owner.want(t, 204, "", "DELETE", "/api/users/@me/sessions/", "")
		owner2.want(t, 401, "session_invalid", "GET", "/api/session", "")
		owner.want(t, 200, "", "GET", "/api/session", "")

		check(t, p.users.RemoveMember(t.Context(), p.first.Organization.ID, userOf(t, p, "second@example.com")))
		second.want(t, 401, "session_invalid", "GET", "/api/session", "")
	})
}

func jsonNumber(n int64) string { b, _ := json.Marshal(n); return string(b) }

func userOf(t *testing.T, p *place, email string) int64 {
	t.Helper()
	all, err := p.users.Users(t.Context())
	check(t, err)
	for _, u := range all {
		if u.Email == email {
			return u.ID
		}
	}
	t.Fatalf("no user %s", email)
	return 0
}

// A password that was replaced while its check waited makes no session.
func TestPasswordIsReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		p.setPassword(t, admin)
		if _, err := p.WithPasswordAfter(t.Context(), admin, secret, func() {}); err != nil {
			t.Fatal(err)
		}
		_, err := p.WithPasswordAfter(t.Context(), admin, secret, func() { p.setPassword(t, admin) })
		if f := fault.From(err); f == nil || f.Code != "invalid_credentials" {
			t.Errorf("signed in with a password that was replaced: %v", err)
		}
		if all, err := p.sessions.OfUser(t.Context(), p.first.User.ID); err != nil || len(all) != 1 {
			t.Errorf("sessions %v, %v, want that of the reset", all, err)
		}
	})
}

// Postgres does not store NUL in text.
func TestNULIsRefused(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		b := p.browser()
		b.want(t, 400, "parse_error", "POST", "/api/session", `{"email":"a\u0000@x","password":"b"}`)
		b.want(t, 400, "parse_error", "POST", "/api/session/invitation", `{"id":"\u0000","token":"b"}`)
		b.want(t, 401, "invalid_credentials", "POST", "/api/session", `{"email":"a@x","password":"\\u0000"}`) // a backslash
		p.withLink(t, admin).want(t, 400, "parse_error", "PATCH", "/api/session", `{"organization_id":"x\u0000"}`)
	})
}

func TestInvitationSignsIn(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		owner := p.withLink(t, admin)
		invite := func(b *browser, email string) (id, token string) {
			var made struct{ ID, Token string }
			check(t, json.Unmarshal([]byte(b.want(t, 201, "", "POST", "/api/organizations/@current/invites/", `{"target_email":"`+email+`","level":8}`).text), &made))
			return made.ID, made.Token
		}
		id, token := invite(owner, "grace@example.com")
		accept := func(id, token, password string) string {
			return `{"id":"` + id + `","token":"` + token + `","first_name":"Grace","password":"` + password + `"}`
		}
		b := p.browser()
		b.want(t, 400, "invalid_invite", "POST", "/api/session/invitation", accept(id, "phi_x", secret))
		b.want(t, 400, "invalid_invite", "POST", "/api/session/invitation", accept(id, "phi_x", "short")) // no work without an invitation
		b.want(t, 400, "too_short", "POST", "/api/session/invitation", accept(id, token, "short"))
		a := b.signIn(t, "/api/session/invitation", accept(id, token, secret))
		if a.body.User.Email != "grace@example.com" || !a.body.HasPassword || a.body.Session.Method != "invitation" {
			t.Errorf("session %s", a.text)
		}
		p.browser().want(t, 400, "invalid_invite", "POST", "/api/session/invitation", accept(id, token, secret))
		p.browser().signIn(t, "/api/session", `{"email":"grace@example.com","password":"`+secret+`"}`)

		// A session would have more rights than the key that made the invitation.
		_, key, err := p.users.CreatePersonalKey(t.Context(), auth.NewPersonalKey{UserID: p.first.User.ID, Label: "x", Scopes: []string{"organization:write"}})
		check(t, err)
		limited := p.browserWith(http.Header{"Authorization": {"Bearer " + key}})
		id, token = invite(limited, "eve@example.com")
		p.browser().want(t, 400, "limited_invite", "POST", "/api/session/invitation", accept(id, token, secret))
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

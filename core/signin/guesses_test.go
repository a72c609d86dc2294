package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/signin"
	"github.com/guidonhq/guidon/core/web"
)

// from is a client at an address.
func (p *place) from(n int) *browser {
	return p.browserWith(http.Header{"X-Forwarded-For": {fmt.Sprint("203.0.113.", n)}})
}

// Guesses of many addresses for one account are bounded, too.
func TestGuessesOfManyAddressesAreThrottled(t *testing.T) {
	t.Parallel()
	cfg := signin.DefaultConfig()
	cfg.AccountRate = web.Rate{PerSecond: 0.0001, Burst: 1} // ten from all addresses
	p := newPlace(t, dbtest.SQLite(t), cfg, nil)
	p.setPassword(t, admin)
	count := map[int]int{}
	for n := range 14 {
		count[p.from(n).send(t, "POST", "/api/session", `{"email":"`+admin+`","password":"wrong guess"}`).status]++
	}
	if count[401] != 10 || count[429] != 4 {
		t.Errorf("guesses for one account: %v", count)
	}
}

// Tokens of links and invitations cannot be guessed without end.
func TestGuessesOfTokensAreThrottled(t *testing.T) {
	t.Parallel()
	cfg := signin.DefaultConfig()
	cfg.AddressRate = web.Rate{PerSecond: 0.0001, Burst: 3}
	p := newPlace(t, dbtest.SQLite(t), cfg, nil)
	for n, path := range []string{"link", "password", "invitation"} {
		b, throttled := p.from(n), 0
		for range 5 {
			switch a := b.send(t, "POST", "/api/session/"+path, `{"id":"x","token":"gdl_wrong","password":"`+secret+`"}`); a.status {
			case 429:
				throttled++
			case 400, 401:
			default:
				t.Errorf("%s: %d %s", path, a.status, a.text)
			}
		}
		if throttled != 2 {
			t.Errorf("%s: %d of 5 guesses are refused for their number, want 2", path, throttled)
		}
	}
}

// Who has a session cannot guess the password behind it.
func TestGuessesOfThePresentPasswordAreThrottled(t *testing.T) {
	t.Parallel()
	cfg := signin.DefaultConfig()
	cfg.AccountRate = web.Rate{PerSecond: 0.0001, Burst: 2}
	p := newPlace(t, dbtest.SQLite(t), cfg, nil)
	p.setPassword(t, admin)
	b := p.withLink(t, admin)
	change := func(current string) answer {
		return b.send(t, "PUT", "/api/users/@me/password", `{"current_password":"`+current+`","password":"another horse battery"}`)
	}
	for range 2 {
		if a := change("wrong guess"); a.status == 429 || a.status < 400 || a.status >= 500 {
			t.Errorf("a wrong password: %d %s", a.status, a.text)
		}
	}
	for _, current := range []string{"wrong guess", secret} {
		if a := change(current); a.status != 429 {
			t.Errorf("past the limit: %d %s", a.status, a.text)
		}
	}
}

// The session that a browser has ends with each way to sign in, also one of an attacker.
func TestEachSignInEndsTheFormerSession(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, p *place) {
		p.setPassword(t, admin)
		var invited struct{ ID, Token string }
		made := p.withLink(t, admin).want(t, 201, "", "POST", "/api/organizations/@current/invites/", `{"target_email":"grace@example.com","level":8}`)
		check(t, json.Unmarshal([]byte(made.text), &invited))
		for path, body := range map[string]string{
			"/api/session":            `{"email":"` + admin + `","password":"` + secret + `"}`,
			"/api/session/link":       p.link(t, admin, false),
			"/api/session/invitation": `{"id":"` + invited.ID + `","token":"` + invited.Token + `","first_name":"Grace","password":"` + secret + `"}`,
		} {
			attacker := p.withLink(t, admin)
			victim := &browser{place: p, cookie: attacker.cookie, header: http.Header{}}
			if a := victim.signIn(t, path, body); a.cookie.Value == attacker.cookie.Value {
				t.Errorf("%s kept the token of the browser", path)
			}
			attacker.want(t, 401, "session_invalid", "GET", "/api/session", "")
			victim.want(t, 200, "", "GET", "/api/session", "")
		}
	})
}

package signin_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/signin"
)

// provider is a small provider of OpenID Connect, which signs everyone in as claims.
type provider struct {
	*httptest.Server
	key    *rsa.PrivateKey
	claims map[string]any
	codes  map[string]url.Values // requests by code
	other  bool                  // signs with another key than the published one
	info   map[string]any        // the answer of the user info endpoint
	asked  atomic.Int64          // requests for tokens
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	p := &provider{key: key, codes: map[string]url.Values{}, claims: map[string]any{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "userinfo_endpoint": p.URL + "/info", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": raw(key.N.Bytes()), "e": raw(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("/info", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.info) })
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		asked := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if asked == nil || asked.Get("code_challenge") != raw(sum[:]) || asked.Get("redirect_uri") != r.FormValue("redirect_uri") || id != "guidon" || secret != "hush" {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{"iss": p.URL, "aud": "guidon", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": asked.Get("nonce")}
		for name, v := range p.claims {
			claims[name] = v
		}
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)})
	})
	return p
}

func raw(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *provider) sign(claims map[string]any) string {
	key := p.key
	if p.other {
		key, _ = rsa.GenerateKey(rand.Reader, 2048)
	}
	body, _ := json.Marshal(claims)
	text := raw([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + raw(body)
	sum := sha256.Sum256([]byte(text))
	signature, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + raw(signature)
}

// authorize is what the page of the provider does after the person has signed in.
func (p *provider) authorize(t *testing.T, location string) (state, code string) {
	t.Helper()
	u, err := url.Parse(location)
	check(t, err)
	q := u.Query()
	if !strings.HasPrefix(location, p.URL+"/authorize?") || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("client_id") != "guidon" || q.Get("scope") != "openid email profile" {
		t.Fatalf("sent to %s", location)
	}
	code = raw([]byte(q.Get("state")))[:8]
	p.codes[code] = q
	return q.Get("state"), code
}

// flow is one sign-in.
type flow struct {
	place    *place
	provider *provider
	cookie   string
	state    string
	code     string
}

func (p *place) startOIDC(t *testing.T, from *provider, next string) *flow {
	t.Helper()
	return p.browser().startOIDC(t, from, next)
}

func (b *browser) startOIDC(t *testing.T, from *provider, next string) *flow {
	t.Helper()
	a := b.want(t, 302, "", "GET", "/api/session/oidc/start?next="+url.QueryEscape(next), "")
	f := &flow{place: b.place, provider: from}
	for _, line := range a.header.Values("Set-Cookie") {
		value, flags, _ := strings.Cut(line, ";")
		if strings.HasPrefix(value, "guidon_oidc=") {
			f.cookie = value
			if flags = strings.ToLower(flags); !strings.Contains(flags, "httponly") || !strings.Contains(flags, "samesite=lax") {
				t.Errorf("the cookie of the sign-in has %s", flags)
			}
		}
	}
	f.state, f.code = from.authorize(t, a.header.Get("Location"))
	return f
}

// finish returns where the browser goes, and its session.
func (f *flow) finish(t *testing.T) (location string, b *browser) {
	t.Helper()
	b = f.place.browserWith(http.Header{"Cookie": {f.cookie}})
	a := b.want(t, 302, "", "GET", "/api/session/oidc/callback?state="+url.QueryEscape(f.state)+"&code="+f.code, "")
	b.header = http.Header{}
	if a.cookie != nil && a.cookie.Value != "" {
		b.cookie = &http.Cookie{Name: a.cookie.Name, Value: a.cookie.Value}
	}
	return a.header.Get("Location"), b
}

func withOIDC(t *testing.T, change func(*signin.Config), fn func(t *testing.T, p *place, from *provider)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		from := newProvider(t)
		cfg := signin.DefaultConfig()
		cfg.OIDC.Issuer, cfg.OIDC.ClientID, cfg.OIDC.ClientSecret = from.URL, "guidon", "hush"
		cfg.OIDC.AllowedDomains, cfg.OIDC.CreateUsers = []string{"example.com"}, true
		if change != nil {
			change(&cfg)
		}
		check(t, cfg.Validate())
		fn(t, newPlace(t, d, cfg, nil), from)
	})
}

func TestOpenIDConnect(t *testing.T) {
	t.Parallel()
	withOIDC(t, nil, func(t *testing.T, p *place, from *provider) {
		if a := p.browser().want(t, 200, "", "GET", "/api/session/methods", ""); !strings.Contains(a.text, `"start_url":"/api/session/oidc/start"`) {
			t.Errorf("methods %s", a.text)
		}
		from.claims = map[string]any{"sub": "1", "email": "Ada@Example.com", "email_verified": true, "given_name": "Ada"}
		location, b := p.startOIDC(t, from, "/flags/7").finish(t)
		if location != "/flags/7" {
			t.Errorf("sent to %s", location)
		}
		a := b.want(t, 200, "", "GET", "/api/session", "")
		if a.body.User.Email != "ada@example.com" || a.body.Session.Method != "oidc" {
			t.Errorf("session %s", a.text)
		}
		// The account at the provider stays that of the user when its address changes.
		from.claims["email"] = "ada.lovelace@example.com"
		_, b = p.startOIDC(t, from, "/").finish(t)
		if a := b.want(t, 200, "", "GET", "/api/session", ""); a.body.User.Email != "ada@example.com" {
			t.Errorf("session %s", a.text)
		}
		users, err := p.users.Users(t.Context())
		if err != nil || len(users) != 2 {
			t.Errorf("users %v, %v", users, err)
		}
		// A user who exists signs in with the address.
		_, err = p.users.CreateUser(t.Context(), auth.NewUser{Email: "grace@example.com", OrganizationID: p.first.Organization.ID, Level: auth.LevelAdmin})
		check(t, err)
		from.claims = map[string]any{"sub": "2", "email": "grace@example.com", "email_verified": "true"}
		_, b = p.startOIDC(t, from, "/").finish(t)
		b.want(t, 200, "", "GET", "/api/organizations/@current/sessions/", "")

		check(t, p.users.RevokeUser(t.Context(), userOf(t, p, "grace@example.com")))
		if location, b := p.startOIDC(t, from, "/").finish(t); location != "/sign-in#error=oidc_no_account" || b.cookie != nil {
			t.Errorf("a revoked user is sent to %s, cookie %v", location, b.cookie)
		}
	})
}

// Each attack on the flow ends at the sign-in page without a session.
func TestOpenIDConnectRefuses(t *testing.T) {
	t.Parallel()
	withOIDC(t, func(c *signin.Config) { c.AddressRate.Burst = 1000 }, func(t *testing.T, p *place, from *provider) {
		good := map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true}
		with := func(name string, v any) map[string]any {
			out := map[string]any{}
			for k, v := range good {
				out[k] = v
			}
			out[name] = v
			return out
		}
		victim := func() *flow { from.claims = good; return p.startOIDC(t, from, "/") }
		for name, c := range map[string]struct {
			code   string
			change func(f *flow)
		}{
			"another domain":             {"oidc_domain", func(*flow) { from.claims = with("email", "eve@evil.example") }},
			"a domain that ends alike":   {"oidc_domain", func(*flow) { from.claims = with("email", "eve@notexample.com") }},
			"an address not verified":    {"oidc_unverified", func(*flow) { from.claims = with("email_verified", false) }},
			"no word of verification":    {"oidc_unverified", func(*flow) { from.claims = with("email_verified", nil) }},
			"another audience":           {"oidc_failed", func(*flow) { from.claims = with("aud", "other") }},
			"another issuer":             {"oidc_failed", func(*flow) { from.claims = with("iss", "https://evil.example") }},
			"an expired token":           {"oidc_failed", func(*flow) { from.claims = with("exp", time.Now().Add(-time.Hour).Unix()) }},
			"another nonce":              {"oidc_failed", func(*flow) { from.claims = with("nonce", "x") }},
			"another key":                {"oidc_failed", func(*flow) { from.other = true }},
			"no cookie":                  {"oidc_failed", func(f *flow) { f.cookie = "a=b" }},
			"another state":              {"oidc_failed", func(f *flow) { f.state = "x" }},
			"no state":                   {"oidc_failed", func(f *flow) { f.cookie, f.state = "guidon_oidc=", "" }},
			"the code of another person": {"oidc_failed", func(f *flow) { f.code = victim().code }},
			"state and code of another":  {"oidc_failed", func(f *flow) { v := victim(); f.state, f.code = v.state, v.code }},
		} {
			from.other = false
			f := victim()
			c.change(f)
			if location, b := f.finish(t); location != "/sign-in#error="+c.code || b.cookie != nil {
				t.Errorf("%s: sent to %s, cookie %v", name, location, b.cookie)
			}
		}
		from.other = false
		// The address and its verification are of one source.
		from.claims, from.info = map[string]any{"sub": "1", "email_verified": true}, map[string]any{"sub": "1", "email": "ada@example.com"}
		if location, _ := p.startOIDC(t, from, "/").finish(t); location != "/sign-in#error=oidc_unverified" {
			t.Errorf("verified by two sources: sent to %s", location)
		}
		for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:alert(1)"} {
			from.claims = good
			if location, _ := p.startOIDC(t, from, next).finish(t); location != "/" {
				t.Errorf("next %q leads to %s", next, location)
			}
		}
		f := victim() // a code works once
		if location, _ := f.finish(t); location != "/" {
			t.Errorf("sent to %s", location)
		}
		if location, _ := f.finish(t); location != "/sign-in#error=oidc_failed" {
			t.Errorf("a code that was used leads to %s", location)
		}
		a := p.browser().want(t, 302, "", "GET", "/api/session/oidc/callback?error=access_denied&state=x", "")
		if a.header.Get("Location") != "/sign-in#error=oidc_cancelled" {
			t.Errorf("sent to %s", a.header.Get("Location"))
		}
	})
}

func TestOpenIDConnectWithoutNewUsers(t *testing.T) {
	t.Parallel()
	withOIDC(t, func(c *signin.Config) { c.OIDC.CreateUsers = false }, func(t *testing.T, p *place, from *provider) {
		from.claims = map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true}
		if location, _ := p.startOIDC(t, from, "/").finish(t); location != "/sign-in#error=oidc_no_account" {
			t.Errorf("sent to %s", location)
		}
		from.Close()
		if location, _ := (&flow{place: p, provider: from, cookie: "guidon_oidc=x.x"}).finish(t); location != "/sign-in#error=oidc_failed" {
			t.Errorf("sent to %s", location)
		}
	})
	open := signin.DefaultConfig()
	open.OIDC.Issuer, open.OIDC.ClientID, open.OIDC.CreateUsers = "https://accounts.example.com", "x", true
	if err := open.Validate(); err == nil || !strings.Contains(err.Error(), "allowed_domains") {
		t.Errorf("users of any domain are made: %v", err)
	}
}

// A callback without a start at the server asks the provider nothing, and callbacks have the
// limit of other attempts.
func TestCallbacksAreLimited(t *testing.T) {
	t.Parallel()
	withOIDC(t, func(c *signin.Config) { c.AddressRate.PerSecond = 0.001 }, func(t *testing.T, p *place, from *provider) {
		state := hmac.New(sha256.New, []byte("abc.."))
		state.Write([]byte("guidon oidc state"))
		made := hmac.New(sha256.New, nil)
		made.Write([]byte("guidon oidc state\x00abc.."))
		count := map[int]int{}
		for i := range 40 {
			b := p.browserWith(http.Header{"Cookie": {"guidon_oidc=abc.."}})
			s := [][]byte{state.Sum(nil), made.Sum(nil)}[i%2]
			a := b.send(t, "GET", "/api/session/oidc/callback?code=x&state="+raw(s), "")
			count[a.status]++
			if want := "/sign-in#error=oidc_failed"; a.status == 302 && a.header.Get("Location") != want {
				t.Errorf("sent to %s, want %s", a.header.Get("Location"), want)
			}
		}
		if count[302] != 30 || count[429] != 10 {
			t.Errorf("callbacks: %v", count)
		}
		if n := from.asked.Load(); n != 0 {
			t.Errorf("the provider was asked %d times", n)
		}
	})
}

// The first sign-in with a provider takes the account over from those who knew its password.
func TestIdentityIsLinked(t *testing.T) {
	t.Parallel()
	withOIDC(t, nil, func(t *testing.T, p *place, from *provider) {
		_, err := p.users.CreateUser(t.Context(), auth.NewUser{Email: "ada@example.com", OrganizationID: p.first.Organization.ID, Level: auth.LevelMember})
		check(t, err)
		p.setPassword(t, "ada@example.com")
		other, own := p.withLink(t, "ada@example.com"), p.withLink(t, admin)
		from.claims = map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true}
		_, b := own.startOIDC(t, from, "/").finish(t)
		if a := b.want(t, 200, "", "GET", "/api/session", ""); a.body.HasPassword {
			t.Errorf("the password stays: %s", a.text)
		}
		other.want(t, 401, "", "GET", "/api/session", "")
		own.want(t, 401, "", "GET", "/api/session", "") // the session that the browser had
		_, again := p.startOIDC(t, from, "/").finish(t)
		b.want(t, 200, "", "GET", "/api/session", "") // later sign-ins end nothing
		again.want(t, 200, "", "GET", "/api/session", "")
		if n := p.entries(t, "identity_linked"); n != 1 {
			t.Errorf("%d entries of the activity log", n)
		}
	})
}

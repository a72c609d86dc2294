// Package oidc signs people in with a provider of OpenID Connect: the authorization code
// flow with PKCE.
//
// The server keeps no state between the two requests of a sign-in, so they may come to two
// nodes. The browser keeps a random secret in a cookie that scripts cannot read. State,
// nonce and the PKCE verifier are derived from it with the secret of the server at the
// provider, which all nodes have: a callback without the cookie of its start
// has no valid state, a token that was issued for another sign-in has another nonce, and a
// code that was stolen on its way cannot be redeemed without the verifier.
//
// A Provider reads the configuration and the keys of the issuer when they are first needed,
// so the server starts without it.
package oidc

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/guidonhq/guidon/core/fault"
)

// Config names the provider, and who may sign in with it.
type Config struct {
	// Issuer is the URL of the provider; empty: none.
	Issuer string `koanf:"issuer"`
	// ClientID and ClientSecret are those of this server at the provider.
	ClientID     string `koanf:"client_id"`
	ClientSecret string `koanf:"client_secret"`
	// Name is shown to people.
	Name string `koanf:"name"`
	// Scopes are asked of the provider, besides openid.
	Scopes []string `koanf:"scopes"`
	// AllowedDomains are the domains of addresses that may sign in; empty: all.
	AllowedDomains []string `koanf:"allowed_domains"`
	// TrustEmail takes addresses for verified that the provider does not mark so.
	TrustEmail bool `koanf:"trust_email"`
	// CreateUsers makes a user for an address that has none. It needs AllowedDomains.
	CreateUsers bool `koanf:"create_users"`
	// Organization is the id of the organization of new users; empty: the first one.
	Organization string `koanf:"organization"`
	// Role is the role of new users: member or admin.
	Role string `koanf:"role"`
}

// DefaultConfig has no provider.
func DefaultConfig() Config {
	return Config{Name: "OpenID Connect", Scopes: []string{"email", "profile"}, AllowedDomains: []string{}, Role: "member"}
}

// Enabled reports whether there is a provider.
func (c Config) Enabled() bool { return c.Issuer != "" }

// Validate returns an error for an invalid setting.
func (c Config) Validate() error {
	if !c.Enabled() {
		return nil
	}
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost":
		return fmt.Errorf("oidc.issuer must look like https://accounts.example.com, got %q", c.Issuer)
	case c.ClientID == "":
		return fmt.Errorf("oidc.client_id is empty: it is the id of this server at the provider")
	case c.CreateUsers && len(c.AllowedDomains) == 0:
		return fmt.Errorf("oidc.create_users needs oidc.allowed_domains: anyone with an account at the provider could sign in")
	case c.Role != "member" && c.Role != "admin":
		return fmt.Errorf("oidc.role must be member or admin, got %q", c.Role)
	}
	return nil
}

// Identity is an account at the provider.
type Identity struct {
	Issuer  string
	Subject string
	Email   string
	Name    string
}

// The errors of Finish. Their codes are for people.
var (
	ErrFailed     = fault.New(fault.Unauthenticated, "oidc_failed", "The sign-in with the provider failed.")
	ErrDomain     = fault.New(fault.Forbidden, "oidc_domain", "Addresses of this domain may not sign in.")
	ErrUnverified = fault.New(fault.Forbidden, "oidc_unverified", "The provider has not verified the e-mail address.")
)

// Provider signs in with one provider. Its methods are safe for concurrent use.
type Provider struct {
	cfg    Config
	client *http.Client

	loading  singleflight.Group
	mu       sync.Mutex
	issuer   *oidc.Provider // nil until it was loaded
	failed   error          // of the last load
	failedAt time.Time
}

// retryAfter is the time after a failed load of the issuer in which sign-ins fail at once.
const retryAfter = 5 * time.Second

// New returns the Provider of a valid cfg.
func New(cfg Config) *Provider {
	return &Provider{cfg: cfg, client: &http.Client{Timeout: 10 * time.Second}}
}

// loadIssuer returns the issuer with its configuration. Concurrent calls share a load; a
// failed one is tried again after retryAfter.
func (p *Provider) loadIssuer(ctx context.Context) (*oidc.Provider, error) {
	if issuer, err := p.known(); issuer != nil || err != nil {
		return issuer, err
	}
	loaded := p.loading.DoChan("", func() (any, error) {
		if issuer, err := p.known(); issuer != nil || err != nil {
			return issuer, err
		}
		// Not the context of a request: the issuer reads keys with it later.
		found, err := oidc.NewProvider(oidc.ClientContext(context.Background(), p.client), p.cfg.Issuer)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.failed, p.failedAt = ErrFailed.Because(fmt.Errorf("read the configuration of the OpenID Connect provider: %w", err)), time.Now()
			return nil, p.failed
		}
		p.issuer, p.failed = found, nil
		return found, nil
	})
	select {
	case r := <-loaded:
		issuer, _ := r.Val.(*oidc.Provider)
		return issuer, r.Err
	case <-ctx.Done():
		return nil, ErrFailed.Because(ctx.Err())
	}
}

// known returns the issuer, or the error of a load that has just failed; else nil.
func (p *Provider) known() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.issuer == nil && p.failed != nil && time.Since(p.failedAt) < retryAfter {
		return nil, p.failed
	}
	return p.issuer, nil
}

func (p *Provider) oauth(issuer *oidc.Provider, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: issuer.Endpoint(), RedirectURL: redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, p.cfg.Scopes...),
	}
}

// derive returns 43 characters that follow from a secret and, if there is one, the secret of
// the server at the provider. Then only a server makes a secret with its state.
func (p *Provider) derive(secret, purpose string) string {
	m := hmac.New(sha256.New, []byte(p.cfg.ClientSecret))
	m.Write([]byte("guidon oidc " + purpose + "\x00" + secret))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Start returns the URL at which the browser signs in, and which leads to redirect.
func (p *Provider) Start(ctx context.Context, redirect, secret string) (string, error) {
	issuer, err := p.loadIssuer(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(issuer, redirect).AuthCodeURL(p.derive(secret, "state"), oidc.Nonce(p.derive(secret, "nonce")), oauth2.S256ChallengeOption(p.derive(secret, "verifier"))), nil
}

type claims struct {
	Email    string `json:"email"`
	Verified any    `json:"email_verified"` // some providers send text
	Name     string `json:"name"`
	Given    string `json:"given_name"`
}

// Finish redeems the code of a callback with the secret of its start. It fails with
// ErrFailed, ErrDomain and ErrUnverified.
func (p *Provider) Finish(ctx context.Context, redirect, secret, state, code string) (Identity, error) {
	if secret == "" || subtle.ConstantTimeCompare([]byte(state), []byte(p.derive(secret, "state"))) != 1 {
		return Identity{}, ErrFailed.Because(fmt.Errorf("the state of the callback is not that of its start"))
	}
	issuer, err := p.loadIssuer(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(issuer, redirect).Exchange(ctx, code, oauth2.VerifierOption(p.derive(secret, "verifier")))
	if err != nil {
		return Identity{}, ErrFailed.Because(fmt.Errorf("redeem the code: %w", err))
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := issuer.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, ErrFailed.Because(fmt.Errorf("check the ID token: %w", err))
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(p.derive(secret, "nonce"))) != 1 {
		return Identity{}, ErrFailed.Because(fmt.Errorf("the nonce of the ID token is not that of the start"))
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return Identity{}, ErrFailed.Because(fmt.Errorf("read the ID token: %w", err))
	}
	if c.Email == "" {
		// The address and whether it is verified come from one source, so from an empty value.
		c = claims{}
		info, err := issuer.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err == nil && info.Subject == verified.Subject {
			err = info.Claims(&c)
		}
		if err != nil || c.Email == "" {
			return Identity{}, ErrUnverified.Because(err)
		}
	}
	return p.identity(verified.Subject, c)
}

// identity checks the address of a person.
func (p *Provider) identity(subject string, c claims) (Identity, error) {
	if !p.cfg.TrustEmail && c.Verified != true && c.Verified != "true" {
		return Identity{}, ErrUnverified
	}
	email := strings.ToLower(strings.TrimSpace(c.Email))
	_, domain, _ := strings.Cut(email, "@")
	allowed := func(d string) bool { return strings.EqualFold(d, domain) }
	if len(p.cfg.AllowedDomains) > 0 && !slices.ContainsFunc(p.cfg.AllowedDomains, allowed) {
		return Identity{}, ErrDomain
	}
	name := c.Given
	if name == "" {
		name = c.Name
	}
	return Identity{Issuer: p.cfg.Issuer, Subject: subject, Email: email, Name: name}, nil
}

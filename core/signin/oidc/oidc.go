// Package oidc signs people in with a provider of OpenID Connect.
package oidc

// Config names the provider.
type Config struct {
	// Issuer is the URL of the provider; empty: none.
	Issuer string `koanf:"issuer"`
}

// DefaultConfig has no provider.
func DefaultConfig() Config { return Config{} }

// Validate returns an error for an invalid setting.
func (c Config) Validate() error { return nil }

// Package webtest serves routes in tests as in production: with a real server on a
// free port of the loopback address, and with keys that the test defines.
package webtest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Keys is a web.Auth that knows only its own keys.
type Keys struct {
	Projects   map[string]auth.Project    // by project key
	Principals map[string]*auth.Principal // by personal key
}

var _ web.Auth = Keys{}

// DefaultKeys is a project 1 with the key phc_test, and a principal with every
// scope and the key phx_test.
func DefaultKeys() Keys {
	return Keys{
		Projects:   map[string]auth.Project{"phc_test": {ID: 1, Name: "Default project", Timezone: "UTC"}},
		Principals: map[string]*auth.Principal{"phx_test": {KeyID: 1, Scopes: []string{"*"}, User: auth.User{ID: 1}}},
	}
}

// ProjectByKey returns the project of a key, or Unauthenticated.
func (k Keys) ProjectByKey(_ context.Context, key string) (auth.Project, error) {
	if p, ok := k.Projects[key]; ok {
		return p, nil
	}
	return auth.Project{}, fault.New(fault.Unauthenticated, "invalid_api_key", "Project API key invalid.")
}

// PrincipalByKey returns the principal of a key, or Unauthenticated.
func (k Keys) PrincipalByKey(_ context.Context, key string) (*auth.Principal, error) {
	if p, ok := k.Principals[key]; ok {
		return p, nil
	}
	return nil, fault.New(fault.Unauthenticated, "authentication_failed", "Personal API key invalid.")
}

// ProjectFor returns the project with that number; @current is the one with
// the lowest. A principal with ProjectIDs sees only those.
func (k Keys) ProjectFor(_ context.Context, p *auth.Principal, name string) (auth.Project, error) {
	var best auth.Project
	for _, q := range k.Projects {
		asked := name == "@current" || name == strconv.FormatInt(q.ID, 10)
		visible := len(p.ProjectIDs) == 0 || slices.Contains(p.ProjectIDs, q.ID)
		if asked && visible && (best.ID == 0 || q.ID < best.ID) {
			best = q
		}
	}
	if best.ID == 0 {
		return best, fault.New(fault.NotFound, "not_found", "No such project.")
	}
	return best, nil
}

// Config returns the default config with free ports.
func Config() web.Config {
	cfg := web.DefaultConfig()
	cfg.Address, cfg.AdminAddress, cfg.AccessSample = "127.0.0.1:0", "127.0.0.1:0", 1
	return cfg
}

// Serve serves routes until the test ends, and returns the base URL of the server,
// without a slash at the end.
func Serve(tb testing.TB, who web.Auth, routes ...web.Routes) string {
	tb.Helper()
	return "http://" + Start(tb, Config(), who, zap.NewNop(), nil, routes...).Address()
}

// Start is Serve with all parameters.
func Start(tb testing.TB, cfg web.Config, who web.Auth, log *zap.Logger, reg prometheus.Registerer, routes ...web.Routes) *web.Server {
	tb.Helper()
	s, err := web.New(cfg, who, log, reg)
	if err != nil {
		tb.Fatalf("new server: %v", err)
	}
	s.Mount(routes...)
	if err := s.Start(context.Background()); err != nil {
		tb.Fatalf("start server: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	return s
}

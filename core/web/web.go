// Package web is the HTTP server of all features.
//
// A feature implements Routes and registers its handlers on a Router: Public
// for paths that client libraries call with a project key (any origin, errors
// as {type, code, detail}), Manage for paths that people and programs call with
// a personal key (scopes, errors as {type, code, detail, attr}). The server
// does the rest in one place: it authenticates requests and finds their
// project, decodes the bodies of client libraries (package body), turns a
// fault.Kind into a status and an error body, answers preflights, writes one log
// line and the metrics of each request, recovers panics, limits sizes and
// rates, and drains on Stop (package listener).
//
// Strings and bytes of a request (paths, headers, queries, the bytes of a
// Payload) are overwritten after the handler has returned: copy what you keep.
package web

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
)

// Routes registers the handlers of a feature. The server calls Routes once,
// before it listens. The order of registration has no meaning: fixed path
// segments are matched before parameters.
type Routes interface {
	Routes(r *Router)
}

// Auth authenticates requests. It must be safe for concurrent use, and its
// errors should carry a fault kind.
type Auth interface {
	// ProjectByKey returns the project of a project key, or Unauthenticated.
	// It runs for every public request. key is overwritten after the call:
	// copy it to keep it.
	ProjectByKey(ctx context.Context, key string) (auth.Project, error)
	// PrincipalByKey returns the principal of a personal key, or
	// Unauthenticated.
	PrincipalByKey(ctx context.Context, key string) (*auth.Principal, error)
	// ProjectFor returns the project with that number, or the current project
	// of p for "@current", or NotFound if p may not see it.
	ProjectFor(ctx context.Context, p *auth.Principal, idOrCurrent string) (auth.Project, error)
}

// Sessions finds the sessions of browsers. It must be safe for concurrent use.
type Sessions interface {
	// PrincipalBySession returns the principal of the session with a token, or
	// Unauthenticated.
	PrincipalBySession(ctx context.Context, token string) (*auth.Principal, error)
}

// UseSessions makes management paths accept sessions, before Start.
func (s *Server) UseSessions(sessions Sessions) { s.router.auth.sessions = sessions }

// Package web is the gate of the house: every request comes in here, and
// every answer leaves in one of two faces.
//
// A feature room implements Routes and says what it serves: Public for the
// paths that client libraries call with a project key (any origin, errors as
// {type, code, detail}), Manage for the paths that people and programs call
// with a personal key (scopes, errors as {type, code, detail, attr}). The gate
// does the rest, once, the same way for everybody: it finds out who is there
// and which project is meant, undoes the eleven ways in which clients have
// wrapped a JSON body over the years (Body), turns a fault.Kind into a status
// and a body, answers preflights, writes one line and one metric a request,
// catches panics, limits sizes and rates, and stops without dropping anyone.
//
// Strings and bytes that come out of a request (paths, headers, queries, the
// bytes of a Payload) belong to the request and are overwritten after the
// handler has returned: copy what you keep.
package web

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
)

// Routes is a room that serves paths. The server calls Routes once, before it
// starts to listen; the order in which rooms and paths are registered has no
// meaning, because the gate puts fixed path segments before parameters.
type Routes interface {
	Routes(g *Router)
}

// Auth answers who is there. It must be safe for parallel use, and an error
// it returns should carry a fault kind.
type Auth interface {
	// ProjectByKey returns the project of a project key, or Unauthenticated.
	// It is on the way of every public request, and the key is overwritten
	// after the call: copy it to keep it.
	ProjectByKey(ctx context.Context, key string) (auth.Project, error)
	// PrincipalByKey returns who holds a personal key, or Unauthenticated.
	PrincipalByKey(ctx context.Context, key string) (*auth.Principal, error)
	// ProjectFor returns the project with that number, or the current project
	// of p for "@current", or NotFound when p may not see it.
	ProjectFor(ctx context.Context, p *auth.Principal, idOrCurrent string) (auth.Project, error)
}

package web

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/request"
)

// authenticator finds the project or the principal of a request and limits
// their rates.
type authenticator struct {
	auth       Auth
	client     func(*fiber.Ctx) netip.Addr
	publicRate *limit.Adjustable[int64] // by project
	manageRate *limit.Adjustable[int64] // by personal key

	// Apart for each kind of key: valid personal keys are not all in memory, so
	// clients with a wrong project key would keep out those behind their address.
	projectFailures, personalFailures *limit.Failures

	onFailed func(FailedKey) // nil: nothing records them
	sessions Sessions        // nil: browsers have none
}

var errNotAuthenticated = fault.New(fault.Unauthenticated, "not_authenticated", "Authentication credentials were not provided.")

// principal returns the principal of the request's personal key, or of the session of a
// browser. The first place with a key decides: the Authorization header, the body, the
// query, the cookie.
func (a *authenticator) principal(c *fiber.Ctx, r *Router) (*auth.Principal, error) {
	key, place := credential.Personal(c.Request())
	if place == "" {
		return a.principalBySession(c, r)
	}
	found, err := a.principalByKey(c, key)
	if auth.IsExpired(err) {
		return nil, err
	}
	if fault.Is(err, fault.Unauthenticated) || (err == nil && found == nil) {
		kind := "Personal API key"
		if apikey.IsSecret(key) {
			kind = "Secret key"
		}
		return nil, fault.Newf(fault.Unauthenticated, codeInvalidUser, "%s found in request %s is invalid.", kind, place).Because(err)
	}
	return found, err
}

// projectNamed returns the project that a path names. For @current, a project
// key in the query parameter token, or else in the header
// X-PostHog-Project-Api-Key, selects the project.
func (a *authenticator) projectNamed(c *fiber.Ctx, principal *auth.Principal, name string) (auth.Project, error) {
	if name == current {
		if token := credential.Project(c.Request()); token != "" {
			return a.projectByToken(c, principal, token)
		}
	} else if !request.IsNumber(name) {
		return auth.Project{}, fault.New(fault.NotFound, "not_found", "Project not found.")
	}
	p, err := a.auth.ProjectFor(c.UserContext(), principal, name)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.NotFound, "not_found", "Project not found.").Because(err)
	}
	return p, err
}

func (a *authenticator) projectByToken(c *fiber.Ctx, principal *auth.Principal, token string) (auth.Project, error) {
	key, shape := apikey.Check(token)
	if shape != "" {
		return auth.Project{}, badKey(shape)
	}
	p, err := a.projectByKey(c, key)
	if err != nil {
		return p, err
	}
	p, err = a.auth.ProjectFor(c.UserContext(), principal, itoa(p.ID))
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Forbidden, "permission_denied", "API key does not have access to the project of this project key.").Because(err)
	}
	return p, err
}

func (a *authenticator) projectOf(c *fiber.Ctx, token, projectID string) (auth.Project, error) {
	key, shape := apikey.Check(token)
	switch shape {
	case "":
	case apikey.ShapePersonal:
		return a.projectByPersonalKey(c, key, projectID)
	default:
		return auth.Project{}, badKey(shape)
	}
	p, err := a.projectByKey(c, key)
	if projectID != "" && fault.Is(err, fault.Unauthenticated) {
		return a.projectByPersonalKey(c, key, projectID)
	}
	return p, err
}

func (a *authenticator) projectByPersonalKey(c *fiber.Ctx, key, projectID string) (auth.Project, error) {
	invalid := fault.Field("project_id", "invalid_project", "Invalid Project ID.")
	if projectID != "" && !request.IsNumber(projectID) {
		return auth.Project{}, invalid
	}
	principal, err := a.principalByKey(c, key)
	switch {
	case auth.IsExpired(err):
		return auth.Project{}, err
	case fault.Is(err, fault.Unauthenticated):
		return auth.Project{}, fault.New(fault.Unauthenticated, codeInvalidUser, "Invalid Personal API key.").Because(err)
	case err != nil:
		return auth.Project{}, err
	case projectID == "":
		projectID = current
	}
	p, err := a.auth.ProjectFor(c.UserContext(), principal, strings.Clone(projectID))
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return auth.Project{}, invalid.Because(errors.Join(ErrHiddenProject, err))
	}
	return p, err
}

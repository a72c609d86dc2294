package web

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/limit"
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
}

// rejectNUL rejects NUL in the query: no store can search for it.
func rejectNUL(c *fiber.Ctx) error {
	if !bytes.Contains(c.Request().URI().QueryString(), []byte("%00")) {
		return nil
	}
	for name, value := range c.Request().URI().QueryArgs().All() {
		if bytes.IndexByte(value, 0) >= 0 || bytes.IndexByte(name, 0) >= 0 {
			attr := strings.ReplaceAll(string(name), "\x00", "")
			return fault.Field(attr, "null_characters_not_allowed", "Null characters are not allowed.")
		}
	}
	return nil
}

// principal returns the principal of the request's personal key. The first
// place with a key decides: the Authorization header, the body, the query.
func (a *authenticator) principal(c *fiber.Ctx) (*auth.Principal, error) {
	key, place := credential.Personal(c.Request())
	if place == "" {
		return nil, fault.New(fault.Unauthenticated, "not_authenticated", "Authentication credentials were not provided.")
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
	} else if !isNumber(name) {
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
	if projectID != "" && !isNumber(projectID) {
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

// isNumber reports whether s is a project number that fits an int64.
func isNumber(s string) bool {
	if len(s) == 0 || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

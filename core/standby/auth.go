package standby

import (
	"context"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Auth authenticates requests with the accounts, and with the snapshot while the
// database is away. A key that the snapshot does not know fails with the error
// of the accounts, Unavailable: it may be newer than the snapshot.
type Auth struct {
	*auth.Service
	standby *Service
}

// NewAuth returns the authentication of requests.
func NewAuth(accounts *auth.Service, s *Service) *Auth { return &Auth{accounts, s} }

// ProjectByKey returns the project of a project key.
func (a *Auth) ProjectByKey(ctx context.Context, key string) (auth.Project, error) {
	p, err := a.Service.ProjectByKey(ctx, key)
	if err == nil || !fault.Is(err, fault.Unavailable) {
		return p, err
	}
	if i := a.standby.usable(); i != nil {
		if id, ok := i.byKey[digestOf(strings.TrimSpace(key))]; ok {
			return i.projects[id], nil
		}
	}
	return p, err
}

// PrincipalByKey returns the principal of a personal key. One from the snapshot
// is marked: it may only read what is in memory. A key expires in the snapshot at
// the same moment as in the database.
func (a *Auth) PrincipalByKey(ctx context.Context, key string) (*auth.Principal, error) {
	p, err := a.Service.PrincipalByKey(ctx, key)
	if err == nil || !fault.Is(err, fault.Unavailable) {
		return p, err
	}
	if i := a.standby.usable(); i != nil {
		if p := i.principals[digestOf(strings.TrimSpace(key))]; p != nil {
			if err := p.CheckExpiry(a.standby.now()); err != nil {
				return nil, err
			}
			return p, nil
		}
	}
	return nil, err
}

// ProjectFor returns the project with that number, or the current project of p.
func (a *Auth) ProjectFor(ctx context.Context, p *auth.Principal, idOrCurrent string) (auth.Project, error) {
	found, err := a.Service.ProjectFor(ctx, p, idOrCurrent)
	if err == nil || p == nil || !fault.Is(err, fault.Unavailable) {
		return found, err
	}
	i := a.standby.usable()
	if i == nil {
		return found, err
	}
	id := p.CurrentProjectID
	if idOrCurrent != auth.Current {
		if id, _ = strconv.ParseInt(idOrCurrent, 10, 64); id == 0 {
			return found, err
		}
	}
	if project, ok := i.projects[id]; ok && project.OrganizationID == p.OrganizationID && p.CanAccessProject(id) {
		return project, nil
	}
	return found, err
}

// Known reports whether a key is valid by the accounts in memory or by the snapshot.
func (a *Auth) Known(key string) bool {
	if a.Service.Known(key) {
		return true
	}
	i := a.standby.usable()
	if i == nil {
		return false
	}
	d := digestOf(strings.TrimSpace(key))
	_, project := i.byKey[d]
	return project || i.principals[d] != nil
}

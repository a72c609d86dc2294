package signin

import (
	"context"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin/oidc"
)

var (
	errCancelled = fault.New(fault.Unauthenticated, "oidc_cancelled", "The provider did not sign in.")
	errNoAccount = fault.New(fault.Forbidden, "oidc_no_account", "There is no user with this e-mail address: ask for an invitation.")
)

// withIdentity signs in the user of an account at the provider. The first time that is the
// user with its address, or a new one if the settings allow it.
func (s *Service) withIdentity(ctx context.Context, id oidc.Identity, from Client) (out SignedIn, err error) {
	err = s.change(ctx, func(ctx context.Context) error {
		user, err := s.store.identityUser(ctx, id.Issuer, id.Subject)
		isNew := err == nil && user == 0
		if isNew {
			user, err = s.linkIdentity(ctx, id)
		}
		if err != nil {
			return err
		}
		out, err = s.createSession(ctx, user, sessions.ByOIDC, from)
		if fault.Is(err, fault.Unauthenticated) { // revoked, or in no organization
			return errNoAccount.Because(err)
		}
		if err != nil || !isNew {
			return err
		}
		return s.audit.Add(ctx, out.Principal, &activity.Event{Scope: activity.User, ItemID: activity.ItemID(user), Activity: "identity_linked", Name: out.Principal.User.Email})
	})
	return out, err
}

// linkIdentity adds an account at the provider to the user with its address. Until now
// someone else may have used the address: unless the user has proven to have it, its password,
// its links and its sessions end.
func (s *Service) linkIdentity(ctx context.Context, id oidc.Identity) (user int64, err error) {
	a, err := s.store.byEmail(ctx, id.Email)
	if err != nil {
		return 0, err
	}
	if a.ID == 0 {
		if a.ID, err = s.createFor(ctx, id); err != nil {
			return 0, err
		}
	} else if !a.IsVerified {
		if err := s.store.dropPassword(ctx, a.ID); err != nil {
			return 0, err
		}
		if err := s.store.dropLinks(ctx, a.ID); err != nil {
			return 0, err
		}
		if _, err := s.sessions.RevokeAll(ctx, a.ID, 0); err != nil {
			return 0, err
		}
	}
	return a.ID, s.store.addIdentity(ctx, id.Issuer, id.Subject, a.ID, s.now())
}

func (s *Service) createFor(ctx context.Context, id oidc.Identity) (int64, error) {
	cfg := s.cfg.OIDC
	if !cfg.CreateUsers {
		return 0, errNoAccount
	}
	organization := cfg.Organization
	if organization == "" {
		all, err := s.accounts.Organizations(ctx)
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			return 0, errNoAccount
		}
		organization = all[0].ID
	}
	level := auth.LevelMember
	if cfg.Role == "admin" {
		level = auth.LevelAdmin
	}
	if name, err := auth.CheckFirstName(id.Name); err != nil {
		id.Name = ""
	} else {
		id.Name = name
	}
	u, err := s.accounts.CreateUser(ctx, auth.NewUser{Email: id.Email, FirstName: id.Name, OrganizationID: organization, Level: level})
	if fault.Is(err, fault.Invalid) { // a revoked user has the address
		return 0, errNoAccount.Because(err)
	}
	if err != nil {
		return 0, err
	}
	return u.ID, s.audit.Add(ctx, &auth.Principal{User: u, OrganizationID: organization},
		&activity.Event{Scope: activity.User, ItemID: activity.ItemID(u.ID), Activity: activity.Created, Name: u.Email})
}

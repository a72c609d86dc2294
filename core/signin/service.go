package signin

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin/oidc"
	"github.com/guidonhq/guidon/core/signin/password"
	"github.com/guidonhq/guidon/core/web"
)

// Service signs in and changes passwords. Its methods are safe for concurrent use.
type Service struct {
	cfg         Config
	store       store
	accounts    *auth.Service
	sessions    *sessions.Service
	invitations *invitation.Service
	audit       *activity.Audit
	hasher      *password.Hasher
	oidc        *oidc.Provider // nil: none
	mail        email.Mailer
	resets      email.AddressLimit
	attempts    *attempts
	metrics     metrics
	log         *zap.Logger
	warned      atomic.Int64 // unix second of the last warning
	now         func() time.Time
}

// Counter counts attempts and requests for the activity log. *activity.Counter is one.
type Counter interface {
	AddKey(f web.FailedKey)
	Add(k activity.Counted, agent string)
}

var _ Counter = (*activity.Counter)(nil)

// New returns the Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, accounts *auth.Service, s *sessions.Service, i *invitation.Service, audit *activity.Audit, mail *email.Sender, counter Counter, log *zap.Logger, reg prometheus.Registerer) (*Service, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	var provider *oidc.Provider
	if cfg.OIDC.Enabled() {
		provider = oidc.New(cfg.OIDC)
	}
	return &Service{
		oidc: provider, mail: mail, resets: email.NewAddressLimit(),
		cfg: cfg, store: store{d}, accounts: accounts, sessions: s, invitations: i, audit: audit, hasher: password.New(),
		attempts: newAttempts(cfg, counter, m), metrics: m, log: log.Named("signin"), now: time.Now,
	}, nil
}

// SignedIn is a new session with its token.
type SignedIn struct {
	sessions.Holder
	Token string
}

// createSession makes a session of a user in the transaction of ctx. The session that the
// browser had ends.
func (s *Service) createSession(ctx context.Context, userID int64, method string, from Client) (out SignedIn, err error) {
	if err := s.sessions.RevokeDigest(ctx, from.Former); err != nil {
		return out, err
	}
	out.Holder, out.Token, err = s.sessions.Create(ctx, userID, sessions.Origin{Method: method, UserAgent: from.UserAgent, Client: from.Address.String()})
	if err != nil {
		return out, err
	}
	s.store.db.AfterCommit(ctx, s.metrics.signIns.WithLabelValues(method, "ok").Inc)
	return out, s.audit.Add(ctx, out.Principal, sessionEvent(out.Session.ID, "signed_in", method))
}

func sessionEvent(id int64, done, name string) *activity.Event {
	return &activity.Event{Scope: activity.Session, ItemID: activity.ItemID(id), Activity: done, Name: name}
}

// change runs fn in a transaction.
func (s *Service) change(ctx context.Context, fn func(ctx context.Context) error) error {
	return db.Away(s.store.db.Tx(ctx, fn))
}

// WithPassword signs in with a password. It fails with Unauthenticated, alike for an
// unknown address and a wrong password, and with Throttled.
func (s *Service) WithPassword(ctx context.Context, email, given string, from Client) (out SignedIn, err error) {
	a, err := s.checkPassword(ctx, email, given, from)
	if err != nil {
		return out, err
	}
	return s.signInChecked(ctx, a, from)
}

// checkPassword returns the account with an address and a password, with a new hash of it if
// the stored one is old.
func (s *Service) checkPassword(ctx context.Context, email, given string, from Client) (account, error) {
	if !s.cfg.Password {
		return account{}, errNoPassword
	}
	email = strings.ToLower(strings.TrimSpace(email))
	if err := s.attempts.allow(sessions.ByPassword, from, email); err != nil {
		return account{}, err
	}
	a, err := s.store.byEmail(ctx, email)
	if err != nil {
		return account{}, db.Away(err)
	}
	ok, err := s.hasher.Matches(ctx, a.Hash, given)
	if err != nil {
		return account{}, err
	}
	if !ok {
		return account{}, s.attempts.refuse(sessions.ByPassword, from, errCredentials)
	}
	if password.IsOld(a.Hash) {
		if hash, err := s.hasher.Hash(ctx, given); err == nil {
			a.Hash = hash // else the old one stays
		}
	}
	return a, nil
}

// signInChecked makes a session for a result of checkPassword, unless the password was
// replaced after that read it: a check may wait for others.
func (s *Service) signInChecked(ctx context.Context, a account, from Client) (out SignedIn, err error) {
	err = s.change(ctx, func(ctx context.Context) error {
		if err := s.requirePassword(ctx, a, errCredentials); err != nil {
			return err
		}
		out, err = s.createSession(ctx, a.ID, sessions.ByPassword, from)
		return err
	})
	if errors.Is(err, errCredentials) {
		return out, s.attempts.refuse(sessions.ByPassword, from, errCredentials)
	}
	return out, err
}

// requirePassword returns changed if the password of an account was set after the account was
// read. Else no other transaction sets it until the end of the transaction of ctx.
func (s *Service) requirePassword(ctx context.Context, a account, changed error) error {
	ok, err := s.store.keepPassword(ctx, a)
	if err == nil && !ok {
		return changed
	}
	return err
}

// NewLink makes a link that signs in the user with an address once, or, with reset, lets the
// user choose a password. It returns the token of the link and its end.
func (s *Service) NewLink(ctx context.Context, email string, reset bool) (token string, expires time.Time, err error) {
	token, expires, _, err = NewLinkIn(ctx, s.store.db, s.cfg.LinkLifetime, email, reset)
	return token, expires, err
}

// NewLinkIn is Service.NewLink on a database, for the command line. It also returns the id of
// the user.
func NewLinkIn(ctx context.Context, d *db.DB, lifetime time.Duration, email string, reset bool) (token string, expires time.Time, user int64, err error) {
	s, now := store{d}, time.Now()
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := s.byEmail(ctx, email)
	if err != nil {
		return "", expires, 0, db.Away(err)
	}
	if a.ID == 0 {
		return "", expires, 0, fault.Newf(fault.NotFound, "not_found", "There is no user with the address %s.", email)
	}
	kind := kindLink
	if reset {
		kind = kindReset
	}
	token, expires = apikey.New(linkPrefix), now.UTC().Add(lifetime)
	err = db.Away(d.Tx(ctx, func(ctx context.Context) error {
		return s.addLink(ctx, a.ID, kind, apikey.DigestOf(token), now, expires)
	}))
	return token, expires, a.ID, err
}

// WithLink signs in with the token of a link, which works once. It fails with
// Unauthenticated and with Throttled.
func (s *Service) WithLink(ctx context.Context, token string, from Client) (out SignedIn, err error) {
	user, d, err := s.openLink(ctx, kindLink, token, sessions.ByLink, from)
	if err != nil {
		return out, err
	}
	err = s.change(ctx, func(ctx context.Context) error {
		if err := s.useLink(ctx, kindLink, d); err != nil {
			return err
		}
		out, err = s.createSession(ctx, user, sessions.ByLink, from)
		return err
	})
	return out, err
}

// openLink returns the user of a link. A wrong token costs no write transaction.
func (s *Service) openLink(ctx context.Context, kind, token, method string, from Client) (user int64, d apikey.Digest, err error) {
	if err := s.attempts.allow(method, from, ""); err != nil {
		return 0, d, err
	}
	d = apikey.DigestOf(strings.TrimSpace(token))
	user, err = s.store.linkUser(ctx, kind, d, s.now())
	if err == nil && user == 0 {
		err = s.attempts.refuse(method, from, errLink)
	}
	return user, d, db.Away(err)
}

// useLink uses a link in the transaction of ctx.
func (s *Service) useLink(ctx context.Context, kind string, d apikey.Digest) error {
	ok, err := s.store.useLink(ctx, kind, d, s.now())
	if err == nil && !ok {
		err = errLink
	}
	return err
}

// WithReset sets a password with the token of a reset link, which works once, and signs in.
func (s *Service) WithReset(ctx context.Context, token, next string, from Client) (out SignedIn, err error) {
	if !s.cfg.Password {
		return out, errNoPassword
	}
	user, d, err := s.openLink(ctx, kindReset, token, sessions.ByReset, from)
	if err != nil {
		return out, err
	}
	a, err := s.store.byID(ctx, user)
	if err != nil {
		return out, db.Away(err)
	}
	hash, err := s.hash(ctx, next, a.Email)
	if err != nil {
		return out, err
	}
	err = s.change(ctx, func(ctx context.Context) error {
		if err := s.useLink(ctx, kindReset, d); err != nil {
			return err
		}
		if err := s.replacePassword(ctx, user, hash, 0); err != nil {
			return err
		}
		if out, err = s.createSession(ctx, user, sessions.ByReset, from); err != nil {
			return err
		}
		return s.audit.Add(ctx, out.Principal, passwordEvent(out.Principal))
	})
	return out, err
}

func passwordEvent(p *auth.Principal) *activity.Event {
	return &activity.Event{Scope: activity.User, ItemID: activity.ItemID(p.User.ID), Activity: "password_changed", Name: p.User.Email}
}

// hash checks and hashes a new password.
func (s *Service) hash(ctx context.Context, next, email string) (string, error) {
	if err := password.Check(next, email); err != nil {
		return "", err
	}
	return s.hasher.Hash(ctx, next)
}

// replacePassword sets the password of a user and ends the sessions of the user but keep.
func (s *Service) replacePassword(ctx context.Context, user int64, hash string, keep int64) error {
	if err := s.store.setPassword(ctx, user, hash, s.now()); err != nil {
		return err
	}
	if err := s.store.dropLinks(ctx, user); err != nil {
		return err
	}
	_, err := s.sessions.RevokeAll(ctx, user, keep)
	return err
}

// ChangePassword sets the password of the user of a session and ends the other sessions of
// the user. current must be the password, if the user has one.
func (s *Service) ChangePassword(ctx context.Context, who *auth.Principal, current, next string, from Client) error {
	switch {
	case who.SessionID == 0:
		return errSession
	case !s.cfg.Password:
		return errNoPassword
	}
	a, err := s.store.byID(ctx, who.User.ID)
	if err != nil {
		return db.Away(err)
	}
	if a.Hash != "" {
		if err := s.attempts.allow(sessions.ByPassword, from, a.Email); err != nil {
			return err
		}
		ok, err := s.hasher.Matches(ctx, a.Hash, current)
		if err != nil {
			return err
		}
		if !ok {
			_ = s.attempts.refuse(sessions.ByPassword, from, errCredentials)
			return errCurrent
		}
	}
	hash, err := s.hash(ctx, next, a.Email)
	if err != nil {
		return err
	}
	return s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		if err := s.requirePassword(ctx, a, errCurrent); err != nil {
			return nil, err
		}
		return passwordEvent(who), s.replacePassword(ctx, who.User.ID, hash, who.SessionID)
	})
}

// WithInvitation makes the user of an invitation, with a password unless that is empty, and
// signs in. It fails with Invalid if the invitation cannot be accepted with the token.
func (s *Service) WithInvitation(ctx context.Context, id, token, firstName, next string, from Client) (out SignedIn, err error) {
	if err := s.attempts.allow(sessions.ByInvitation, from, ""); err != nil {
		return out, err
	}
	hash := ""
	if next != "" {
		if !s.cfg.Password {
			return out, errNoPassword
		}
		// A hash is expensive: only for those who have an invitation.
		if err := s.invitations.CheckToken(ctx, id, token); err != nil {
			return out, err
		}
		if hash, err = s.hash(ctx, next, ""); err != nil {
			return out, err
		}
	}
	err = s.invitations.AcceptWith(ctx, id, token, firstName, func(ctx context.Context, made invitation.Accepted) (err error) {
		if hash != "" {
			if err := password.Check(next, made.User.Email); err != nil {
				return err
			}
			if err := s.store.setPassword(ctx, made.User.ID, hash, s.now()); err != nil {
				return err
			}
		}
		out, err = s.createSession(ctx, made.User.ID, sessions.ByInvitation, from)
		return err
	})
	return out, err
}

// SignOut ends the session of a request.
func (s *Service) SignOut(ctx context.Context, who *auth.Principal) error {
	if who.SessionID == 0 {
		return errSession
	}
	return s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		return sessionEvent(who.SessionID, "signed_out", ""), s.sessions.Revoke(ctx, who.User.ID, who.SessionID)
	})
}

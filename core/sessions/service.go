package sessions

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/auth/keyusage"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

const (
	// saveInterval is the time between saves of the last requests of sessions.
	saveInterval = time.Minute
	// cleanInterval is the time between deletions of sessions that have ended.
	cleanInterval = time.Hour
	// keepEnded is the time for which ended sessions stay in the database.
	keepEnded = 24 * time.Hour
	// queryTimeout bounds one query for a session.
	queryTimeout = 5 * time.Second
	// maxCached bounds the sessions in memory.
	maxCached = 10_000
)

// Accounts is what sessions need of the accounts.
type Accounts interface {
	// Version returns the version of the accounts in memory, which changes with them.
	Version() int64
}

// Service makes, finds and revokes sessions. Its methods are safe for concurrent use, also
// before Start and after Stop.
type Service struct {
	cfg      Config
	ttl      time.Duration // of a session in memory
	store    store
	accounts Accounts
	log      *zap.Logger
	now      func() time.Time

	cache      cache
	generation atomic.Int64 // incremented by revocations of this node
	loading    singleflight.Group
	usage      *keyusage.Usage
	service    retry.Service
}

// New returns the Service on d, whose schema must be migrated. ttl is the time for which a
// session in memory is valid without another look.
func New(cfg Config, ttl time.Duration, d *db.DB, accounts Accounts, log *zap.Logger) *Service {
	return &Service{
		cfg: cfg, ttl: ttl, store: store{d}, accounts: accounts, log: log.Named("sessions"), now: time.Now,
		cache: cache{limit: maxCached, byDigest: map[apikey.Digest]cached{}}, usage: keyusage.New(),
	}
}

// Start begins to save when sessions were used, and to delete ended ones.
func (s *Service) Start(context.Context) error {
	s.service.Start()
	s.service.Every(saveInterval, func(ctx context.Context) { s.logFailure(ctx, "session use not saved", s.saveUsage(ctx)) })
	s.service.Every(cleanInterval, func(ctx context.Context) {
		if !s.store.db.IsReady() || s.store.db.ReadOnly {
			return
		}
		s.logFailure(ctx, "ended sessions not deleted", s.store.clean(ctx, s.now().Add(-keepEnded), s.cfg.Idle))
	})
	return nil
}

func (s *Service) logFailure(ctx context.Context, message string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Warn(message, zap.Error(err))
	}
}

// Stop saves when sessions were used.
func (s *Service) Stop(ctx context.Context) error {
	if err := s.service.Stop(ctx); err != nil {
		return err
	}
	return s.saveUsage(ctx)
}

func (s *Service) saveUsage(ctx context.Context) error {
	last := s.usage.Drain()
	if last == nil || s.store.db.ReadOnly {
		return nil
	}
	if err := s.store.saveUsage(ctx, last); err != nil {
		s.usage.Restore(last)
		return fmt.Errorf("save the last use of %d sessions: %w", len(last), err)
	}
	return nil
}

// Create makes a session of a user in the transaction of ctx and returns its token, which
// is not stored. It fails with Unauthenticated if the user is revoked or in no organization.
func (s *Service) Create(ctx context.Context, userID int64, o Origin) (Holder, string, error) {
	now := s.now().UTC().Truncate(time.Microsecond)
	out := Session{
		UserID: userID, Method: o.Method, UserAgent: o.UserAgent, Client: o.Client,
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(s.cfg.Lifetime),
	}
	token := apikey.New(TokenPrefix)
	d := apikey.DigestOf(token)
	if err := s.store.add(ctx, &out, d); err != nil {
		return Holder{}, "", err
	}
	h, err := s.store.find(ctx, d)
	return h, token, err
}

// RevokeDigest ends the session with the digest of a token, if there is one.
func (s *Service) RevokeDigest(ctx context.Context, digest string) error {
	if digest == "" {
		return nil
	}
	_, err := s.revoke(ctx, "hash = ?", digest)
	return err
}

// PrincipalBySession returns the principal of the session with a token: the user with all
// scopes in one organization. It fails with Unauthenticated if there is no such session or
// it has ended, and with Unavailable if the database cannot be asked. The result is shared
// and must not be changed.
func (s *Service) PrincipalBySession(ctx context.Context, token string) (*auth.Principal, error) {
	h, err := s.Find(ctx, token)
	if err != nil {
		return nil, err
	}
	return h.Principal, nil
}

// Find is PrincipalBySession with the session.
func (s *Service) Find(ctx context.Context, token string) (Holder, error) {
	d := apikey.DigestOf(token)
	h, ok := s.cache.get(d, s.now(), s.ttl, s.stamp())
	if !ok {
		var err error
		if h, err = s.load(ctx, d); err != nil {
			return Holder{}, err
		}
	}
	now := s.now()
	if h.Session.EndedBefore(now, s.cfg.Idle) {
		return Holder{}, errInvalid
	}
	s.usage.Record(ctx, h.Session.ID)
	return h, nil
}

// stamp changes with the accounts and with revocations of this node.
func (s *Service) stamp() stamp { return stamp{s.accounts.Version(), s.generation.Load()} }

// load reads a session. Concurrent calls for one session share a query, unless a session
// was revoked between them.
func (s *Service) load(ctx context.Context, d apikey.Digest) (Holder, error) {
	now, stamp := s.now(), s.stamp()
	loaded := s.loading.DoChan(fmt.Sprint(d, stamp), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
		defer cancel()
		h, err := s.store.find(ctx, d)
		if err == nil {
			s.cache.put(d, cached{holder: h, stamp: stamp, at: now})
		}
		return h, err
	})
	select {
	case r := <-loaded:
		h, _ := r.Val.(Holder)
		if r.Err == nil || fault.From(r.Err) != nil {
			return h, r.Err
		}
		return h, fault.New(fault.Unavailable, db.CodeUnavailable, "Sessions cannot be checked now.").After(time.Second).Because(r.Err)
	case <-ctx.Done():
		return Holder{}, ctx.Err()
	}
}

// OfUser lists the sessions of a user that have not ended, the latest first.
func (s *Service) OfUser(ctx context.Context, userID int64) ([]Session, error) {
	return s.store.list(ctx, s.now(), s.cfg.Idle, "s.user_id = ?", userID)
}

// OfOrganization lists the sessions that have not ended of the members of an organization.
// A session that works in another organization is not among them.
func (s *Service) OfOrganization(ctx context.Context, organizationID string) ([]Session, error) {
	return s.store.list(ctx, s.now(), s.cfg.Idle, inOrganization, organizationID, organizationID)
}

// Revoke ends a session of a user, or fails with NotFound. It also works inside of a
// transaction.
func (s *Service) Revoke(ctx context.Context, userID, id int64) error {
	n, err := s.revoke(ctx, "user_id = ? AND id = ?", userID, id)
	if err == nil && n == 0 {
		err = errNotFound
	}
	return err
}

// RevokeAll ends the sessions of a user but the one with the id keep, and returns their
// number.
func (s *Service) RevokeAll(ctx context.Context, userID, keep int64) (int64, error) {
	return s.revoke(ctx, "user_id = ? AND id <> ?", userID, keep)
}

// revoke ends sessions in a transaction that also increments the version of the accounts,
// by which other nodes read their sessions again.
func (s *Service) revoke(ctx context.Context, where string, args ...any) (n int64, err error) {
	err = s.store.db.Tx(ctx, func(ctx context.Context) error {
		if n, err = s.store.revoke(ctx, s.now(), where, args...); err != nil || n == 0 {
			return err
		}
		return s.touch(ctx)
	})
	return n, db.Away(err)
}

// touch makes all nodes read their sessions again.
func (s *Service) touch(ctx context.Context) error {
	s.store.db.AfterCommit(ctx, func() {
		s.generation.Add(1)
		s.store.db.Wakes.Accounts.Publish()
	})
	return s.store.touchAccounts(ctx)
}

// SetOrganization makes a session work in another organization of its user. It fails with
// Invalid if the user is not a member of it.
func (s *Service) SetOrganization(ctx context.Context, id int64, organizationID string) error {
	return db.Away(s.store.db.Tx(ctx, func(ctx context.Context) error {
		ok, err := s.store.setOrganization(ctx, id, organizationID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Field("organization_id", "does_not_exist", "You are not a member of this organization.")
		}
		return s.touch(ctx)
	}))
}

package invitation

import (
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/fault"
)

// Service makes, lists, deletes and accepts invitations. It is safe for concurrent use.
type Service struct {
	store  store
	users  *auth.Service
	audit  *activity.Audit
	mail   email.Mailer
	emails email.AddressLimit
	log    *zap.Logger
	now    func() time.Time
}

// NewService returns the Service on d, whose schema must be migrated.
func NewService(d *db.DB, users *auth.Service, audit *activity.Audit, mail *email.Sender, log *zap.Logger) *Service {
	return &Service{store: store{d}, users: users, audit: audit, mail: mail, emails: email.NewAddressLimit(), log: log.Named("invitation"), now: time.Now}
}

// state is an invitation in the activity log.
type state struct {
	Level int `json:"level"`
}

func event(i Invitation, done string) *activity.Event {
	return &activity.Event{Scope: activity.Invite, ItemID: i.ID, Activity: done, Name: i.Email, OrganizationID: i.OrganizationID}
}

// Create makes an invitation to the organization of who and returns its token, which is
// not stored. It replaces open invitations of the same address, and queues an e-mail if there
// is an SMTP server. It fails with Invalid for
// an address that has a user, Forbidden for a level above that of who, and Conflict if
// too many are open.
func (s *Service) Create(ctx context.Context, who *auth.Principal, in New) (i Invitation, token string, err error) {
	if in.Level == 0 {
		in.Level = auth.LevelMember
	}
	address, err := auth.CheckEmail(in.Email)
	if f := fault.From(err); f != nil {
		return i, "", fault.Field("target_email", f.Code, f.Detail)
	}
	if in.FirstName, err = auth.CheckFirstName(in.FirstName); err != nil {
		return i, "", err
	}
	if err := auth.CheckLevel(in.Level); err != nil {
		return i, "", err
	}
	if in.Level > who.OrgLevel {
		return i, "", errLevel
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	i = Invitation{
		ID: uuid.Must(uuid.NewV7()).String(), OrganizationID: who.OrganizationID, Email: address, FirstName: in.FirstName, Level: in.Level,
		Scopes: who.Scopes, CreatedBy: who.User.ID, CreatedAt: now, ExpiresAt: now.Add(Validity), EmailState: EmailOff,
	}
	if s.mail.Enabled() {
		i.EmailState = EmailQueued
	}
	token = apikey.New(tokenPrefix)
	name := "" // of the organization
	err = s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		if err := s.replace(ctx, i, apikey.DigestOf(token)); err != nil {
			return nil, err
		}
		e := event(i, activity.Created)
		e.After = state{i.Level}
		if i.EmailState == EmailOff {
			return e, nil
		}
		organization, err := s.users.Organization(ctx, i.OrganizationID)
		name = organization.Name
		return e, err
	})
	if err == nil {
		s.queueEmail(ctx, &i, cmp.Or(who.User.FirstName, who.User.Email), name, token)
	}
	return i, token, err
}

func (s *Service) replace(ctx context.Context, i Invitation, token apikey.Digest) error {
	taken, err := s.store.taken(ctx, i.Email)
	if err != nil {
		return err
	}
	if taken {
		return errTaken
	}
	if err := s.store.removeFor(ctx, i.OrganizationID, i.Email); err != nil {
		return err
	}
	open, err := s.store.list(ctx, i.OrganizationID)
	if err != nil {
		return err
	}
	if len(open) >= maxOpen {
		return errTooMany
	}
	return s.store.add(ctx, i, token)
}

// List returns the open invitations of an organization, also expired ones, the newest
// first.
func (s *Service) List(ctx context.Context, organization string) ([]Invitation, error) {
	all, err := s.store.list(ctx, organization)
	for n := range all {
		all[n].EmailState = emailState(all[n].EmailState, all[n].CreatedAt, s.now())
	}
	return all, db.Away(err)
}

// Delete deletes an open invitation of the organization of who, or fails with NotFound.
func (s *Service) Delete(ctx context.Context, who *auth.Principal, id string) error {
	return s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		i, _, err := s.store.open(ctx, id)
		if err != nil {
			return nil, err
		}
		removed, err := s.store.remove(ctx, who.OrganizationID, id)
		if err == nil && !removed {
			err = errNotFound
		}
		return event(i, activity.Deleted), err
	})
}

// Accept makes the user of an invitation, who is a member of its organization, and a
// personal key. An empty firstName is that of the invitation. It fails with Invalid if
// the invitation cannot be accepted with the token.
func (s *Service) Accept(ctx context.Context, id, token, firstName string) (out Accepted, err error) {
	if _, err := s.find(ctx, id, token); err != nil { // a wrong token needs no write transaction
		return out, db.Away(err)
	}
	err = s.audit.Change(ctx, nil, func(ctx context.Context) (*activity.Event, error) {
		i, err := s.accept(ctx, id, token, firstName, &out)
		if err != nil {
			return nil, err
		}
		return nil, s.addKey(ctx, i, &out)
	})
	return out, err
}

// CheckToken fails with Invalid for an invitation that AcceptWith does not accept with the
// token.
func (s *Service) CheckToken(ctx context.Context, id, token string) error {
	i, err := s.find(ctx, id, token)
	if err != nil {
		return db.Away(err)
	}
	if !slices.Contains(i.Scopes, "*") {
		return errLimited
	}
	return nil
}

// AcceptWith is Accept without a personal key: then runs in the transaction that makes the
// user. It fails with Invalid for an invitation whose key would have fewer scopes than all.
func (s *Service) AcceptWith(ctx context.Context, id, token, firstName string, then func(context.Context, Accepted) error) error {
	if err := s.CheckToken(ctx, id, token); err != nil {
		return err
	}
	return s.audit.Change(ctx, nil, func(ctx context.Context) (*activity.Event, error) {
		var out Accepted
		i, err := s.accept(ctx, id, token, firstName, &out)
		if err != nil {
			return nil, err
		}
		if err := s.addEntries(ctx, i, out); err != nil {
			return nil, err
		}
		return nil, then(ctx, out)
	})
}

// find returns the open invitation with the token, or fails with errInvalid.
func (s *Service) find(ctx context.Context, id, token string) (Invitation, error) {
	i, hash, err := s.store.open(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && subtle.ConstantTimeCompare([]byte(hash), []byte(apikey.DigestOf(token).String())) != 1 {
		return Invitation{}, errInvalid
	}
	return i, err
}

// accept makes the user of an invitation.
func (s *Service) accept(ctx context.Context, id, token, firstName string, out *Accepted) (i Invitation, err error) {
	if i, err = s.find(ctx, id, token); err != nil {
		return i, err
	}
	now := s.now()
	if i.Expired(now) {
		return i, errExpired
	}
	if err := s.checkInviter(ctx, i); err != nil {
		return i, err
	}
	first, err := s.store.use(ctx, i.ID, now)
	if err == nil && !first {
		err = errInvalid
	}
	if err != nil {
		return i, err
	}
	if firstName == "" {
		firstName = i.FirstName
	}
	*out = Accepted{OrganizationID: i.OrganizationID, Level: i.Level}
	out.User, err = s.users.CreateUser(ctx, auth.NewUser{Email: i.Email, FirstName: firstName, OrganizationID: i.OrganizationID, Level: i.Level})
	return i, err
}

// checkInviter fails unless the inviter may still invite to the level.
func (s *Service) checkInviter(ctx context.Context, i Invitation) error {
	if i.CreatedBy == 0 { // the command line
		return nil
	}
	members, err := s.users.Members(ctx, i.OrganizationID)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.User.ID == i.CreatedBy && m.Level >= max(auth.LevelAdmin, i.Level) {
			return nil
		}
	}
	return errInviter
}

// addKey makes the personal key of the new user, and the entries of the activity log.
func (s *Service) addKey(ctx context.Context, i Invitation, out *Accepted) error {
	key, secret, err := s.users.CreatePersonalKey(ctx, auth.NewPersonalKey{
		UserID: out.User.ID, OrganizationID: i.OrganizationID, Label: "Invitation", Scopes: i.Scopes,
	})
	if err != nil {
		return err
	}
	out.Key = secret
	return s.addEntries(ctx, i, *out,
		&activity.Event{Scope: activity.PersonalKey, ItemID: activity.ItemID(key.ID), Activity: activity.Created, Name: key.Label})
}

// addEntries adds the entries of an accepted invitation, and more, which name the new user.
func (s *Service) addEntries(ctx context.Context, i Invitation, out Accepted, more ...*activity.Event) error {
	who := &auth.Principal{User: out.User, OrganizationID: i.OrganizationID}
	for _, e := range append([]*activity.Event{
		event(i, "accepted"),
		{Scope: activity.User, ItemID: activity.ItemID(out.User.ID), Activity: activity.Created, Name: out.User.Email, After: state{i.Level}},
	}, more...) {
		if err := s.audit.Add(ctx, who, e); err != nil {
			return err
		}
	}
	return nil
}

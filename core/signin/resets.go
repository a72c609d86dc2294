package signin

import (
	"context"
	"strings"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/fault"
)

var (
	errNoMail  = fault.New(fault.Conflict, "email_off", "This server sends no e-mail: ask an administrator to run guidon user login-link --reset.")
	errMailing = fault.New(fault.Unavailable, "email_busy", "Too many e-mails wait to be sent: try again in a few minutes.")
)

// Results of a request for a new password.
const (
	resetQueued    = "queued"
	resetThrottled = "throttled"
	resetBusy      = "busy" // too many e-mails wait
)

// mailsResets reports whether password resets by e-mail are enabled.
func (s *Service) mailsResets() bool { return s.cfg.Password && s.mail.Enabled() }

// RequestReset queues an e-mail with a link that chooses a new password, to the user with an
// address. It looks for the user after it has returned, so its result and the time it takes
// are the same for an address without a user. It fails with Conflict if the server sends no
// e-mail, with Throttled and with Unavailable.
func (s *Service) RequestReset(address string, from Client) error {
	switch {
	case !s.cfg.Password:
		return errNoPassword
	case !s.mail.Enabled():
		return errNoMail
	}
	if err := s.attempts.take(from, ""); err != nil {
		s.attempts.addReset(from, resetThrottled)
		return err
	}
	address, err := auth.CheckEmail(address)
	if err != nil {
		return err
	}
	if err := s.resets.Allow(address); err != nil {
		s.attempts.addReset(from, resetThrottled)
		return fault.New(fault.Throttled, "throttled", "Too many links for this address: use the newest one, or wait.").After(fault.From(err).RetryAfter)
	}
	address = strings.Clone(address) // of the body of the request
	entry := activity.Counted{Activity: activity.ResetRequested, Scope: activity.User, Client: from.Address.String()}
	agent := strings.Clone(from.UserAgent)
	err = s.mail.Queue(email.Job{
		Kind: email.KindReset, Lifetime: s.cfg.LinkLifetime,
		Make: func(ctx context.Context) (m email.Message, err error) {
			m, err = s.resetMessage(ctx, address, &entry)
			if err == nil {
				s.attempts.counter.Add(entry, agent)
			}
			return m, err
		},
		Done: func(_ context.Context, err error) {
			if err != nil {
				entry.Activity, entry.Reason = activity.EmailFailed, email.KindReset
				s.attempts.counter.Add(entry, agent)
			}
		},
	})
	if err != nil {
		s.attempts.addReset(from, resetBusy)
		return errMailing
	}
	s.attempts.addReset(from, resetQueued)
	return nil
}

// resetMessage makes a link for the user with an address and returns the message with it,
// without an address if there is no user. It completes the entry of the activity log by the
// user.
func (s *Service) resetMessage(ctx context.Context, address string, entry *activity.Counted) (email.Message, error) {
	token, expires, user, err := NewLinkIn(ctx, s.store.db, s.cfg.LinkLifetime, address, true)
	if fault.Is(err, fault.NotFound) {
		return email.Message{}, nil
	}
	if err != nil {
		return email.Message{}, err
	}
	organization, err := s.store.organization(ctx, user)
	if err != nil {
		return email.Message{}, err
	}
	entry.ItemID, entry.Name, entry.OrganizationID = activity.ItemID(user), address, organization
	return email.Reset(address, s.mail.Link("/reset-password#token="+token), expires), nil
}

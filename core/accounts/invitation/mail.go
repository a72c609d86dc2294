package invitation

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/email"
)

// The states of the e-mail with an invitation.
const (
	EmailOff    = "off" // none was queued: the link must be handed over
	EmailQueued = "queued"
	EmailSent   = "sent" // the SMTP server accepted it
	EmailFailed = "failed"
)

// lostAfter is the age at which a queued e-mail counts as failed: the node that queued it
// crashed, else it had a result.
const lostAfter = email.MaxAge + time.Minute

// emailState returns the state of an e-mail that was stored for an invitation.
func emailState(stored string, created, now time.Time) string {
	switch {
	case stored == "":
		return EmailOff
	case stored == EmailQueued && now.Sub(created) > lostAfter:
		return EmailFailed
	}
	return stored
}

// consolePage returns the page of the console that accepts an invitation.
func consolePage(id, token string) string { return "/invitation#id=" + id + "&token=" + token }

// queueEmail queues the e-mail with a new invitation. The state of i is stored when the
// e-mail has a result.
func (s *Service) queueEmail(ctx context.Context, i *Invitation, inviter, organization, token string) {
	if i.EmailState != EmailQueued {
		return
	}
	m := email.Invitation(email.Invited{
		To: i.Email, FirstName: i.FirstName, Inviter: inviter, Organization: organization,
		Link: s.mail.Link(consolePage(i.ID, token)), Expires: i.ExpiresAt,
	})
	entry := event(*i, activity.EmailFailed)
	err := s.emails.Allow(i.Email)
	if err != nil {
		s.log.Warn("e-mail not queued: address rate limit", zap.String("kind", email.KindInvitation), zap.String("invitation", i.ID))
	} else {
		err = s.mail.Queue(email.Job{
			Kind: email.KindInvitation,
			Make: func(context.Context) (email.Message, error) { return m, nil },
			Done: func(ctx context.Context, err error) {
				state := EmailSent
				if err != nil {
					state = EmailFailed
				}
				s.setEmailState(ctx, entry, state)
			},
		})
	}
	if err != nil {
		i.EmailState = EmailFailed
		s.setEmailState(ctx, entry, EmailFailed)
	}
}

// setEmailState stores the result of an e-mail, with the entry of one that failed. It needs a
// moment of a database: the invitation works without it.
func (s *Service) setEmailState(ctx context.Context, failed *activity.Event, state string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.audit.Change(ctx, nil, func(ctx context.Context) (*activity.Event, error) {
		if err := s.store.setEmailState(ctx, failed.ItemID, state); err != nil || state != EmailFailed {
			return nil, err
		}
		return failed, nil
	})
	if err != nil {
		s.log.Warn("e-mail state update failed", zap.String("invitation", failed.ItemID), zap.String("state", state), zap.Error(err))
	}
}

package notifications

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/sdk"
)

// previewer is a Notifier that can show what it would send, without sending it.
type previewer interface {
	// Plugin returns the name of the plugin, such as "slack".
	Plugin() string
	// Preview returns the message in the form in which the service gets it.
	Preview(ctx context.Context, n *sdk.Notification) (sdk.Preview, error)
}

// renderedView is a message in the form in which a notifier sends it. With an Error it
// has no Body.
type renderedView struct {
	Plugin    string   `json:"plugin"`
	MediaType string   `json:"media_type"`
	Body      string   `json:"body"`
	Warnings  []string `json:"warnings"`
	Error     string   `json:"error,omitempty"`
}

// previewTimeout bounds a preview, which a plugin computes without the network.
const previewTimeout = 5 * time.Second

// render returns the message that the notifier of d would send.
func (s *Service) render(ctx context.Context, m Message, d actions.Destination) *renderedView {
	v := &renderedView{Warnings: []string{}}
	n := s.find(d.Notifier)
	shows, ok := n.(previewer)
	switch {
	case n == nil:
		v.Error = "There is no notifier of this name in the config of the server."
		return v
	case !n.Available():
		v.Error = "The notifier does not run."
		return v
	case !ok:
		v.Error = "The notifier has no preview."
		return v
	}
	v.Plugin = shows.Plugin()
	msg, err := s.testNotification(m, d.To)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	p, err := shows.Preview(ctx, msg)
	if err != nil {
		v.Error = "The notifier has no preview."
		if e := sdk.AsError(err); e != nil && e.Class != sdk.ClassUnsupported {
			v.Error = e.Message
		}
		return v
	}
	v.MediaType, v.Body = p.MediaType, string(p.Rendered)
	v.Warnings = append(v.Warnings, p.Warnings...)
	return v
}

package post

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/guidonhq/guidon/sdk"
)

// Sender is the connection of a notifier that posts; embed it for its Close. Connect
// must be called in Open, before Post.
type Sender struct{ client, named *http.Client }

// Connect makes the clients.
func (s *Sender) Connect(o Options) { s.client, s.named = o.Client(), o.NamedClient() }

// Send posts body as JSON to the destination that the action of m names, or to the
// configured one: see the function JSON. Errors of a named destination hold its
// status only.
func (s *Sender) Send(ctx context.Context, m *sdk.Notification, to string, header http.Header, body any) (Answer, error) {
	if m.Destination == "" {
		return s.Post(ctx, to, header, body)
	}
	answer, err := JSON(ctx, s.named, to, header, body)
	return answer, concealed(err)
}

// Post posts body as JSON to an address of the config: see the function JSON.
func (s *Sender) Post(ctx context.Context, to string, header http.Header, body any) (Answer, error) {
	return JSON(ctx, s.client, to, header, body)
}

// Close closes idle connections.
func (s *Sender) Close(context.Context) error {
	if s.client != nil {
		s.client.CloseIdleConnections()
		s.named.CloseIdleConnections()
	}
	return nil
}

// Target returns the URL for a message: its destination, which Options.URL checks
// against hosts, or else the configured one.
func (o Options) Target(m *sdk.Notification, configured string, hosts ...string) (string, error) {
	if m.Destination == "" {
		return configured, nil
	}
	if err := o.URL(m.Destination, configured, hosts...); err != nil {
		return "", sdk.Permanent(err)
	}
	return m.Destination, nil
}

// Preview returns the JSON of a message.
func Preview(message any) (sdk.Preview, error) {
	raw, err := json.Marshal(message)
	return sdk.Preview{Rendered: raw, MediaType: "application/json"}, err
}

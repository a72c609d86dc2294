package post

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/guidonhq/guidon/sdk"
)

// Sender is the connection of a notifier that posts; embed it for its Close. Connect
// must be called in Open, before Post.
type Sender struct{ client *http.Client }

// Connect makes the client.
func (s *Sender) Connect(o Options) { s.client = o.Client() }

// Post posts body as JSON: see the function JSON.
func (s *Sender) Post(ctx context.Context, to string, header http.Header, body any) (Answer, error) {
	return JSON(ctx, s.client, to, header, body)
}

// Close closes idle connections.
func (s *Sender) Close(context.Context) error {
	if s.client != nil {
		s.client.CloseIdleConnections()
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

package web

import "context"

type clientKey struct{}

// ClientOf returns the address of the client of a management request from the
// context of the request, "" without one.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

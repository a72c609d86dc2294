package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Bound are the addresses of a server that is not made yet, by their settings below http.
// Connections wait in the queue of the system until the server serves.
type Bound map[string]net.Listener

// BindAll binds addresses, by their settings; those that are empty are left out.
func BindAll(ctx context.Context, addresses map[string]string) (Bound, error) {
	b := Bound{}
	for setting, address := range addresses {
		if address == "" {
			continue
		}
		ln, err := Bind(ctx, setting, address)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b[setting] = ln
	}
	return b, nil
}

// Close closes the addresses, for a start that failed. After the stop of the server it does
// nothing.
func (b Bound) Close() error {
	for _, ln := range b {
		_ = ln.Close() // fails only if it is closed
	}
	return nil
}

// Bind binds an address. The error names it and its setting.
func Bind(ctx context.Context, setting, address string) (net.Listener, error) {
	ln, err := Listen(ctx, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another process uses the address; set http.%s to a free one: %w", address, setting, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s (http.%s): %w", address, setting, err)
	}
	return ln, nil
}

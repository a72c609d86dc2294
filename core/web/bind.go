package web

import (
	"context"
	"errors"
	"net"
)

// The settings with the addresses.
const (
	publicSetting = "address"
	adminSetting  = "admin_address"
)

// Bound are the addresses of a server that is not made yet. Connections wait in
// the queue of the system until the server serves.
type Bound struct{ public, admin net.Listener }

// Bind binds the addresses of cfg, so that a start on a taken address fails
// before it changes anything. The error names the address and its setting.
func Bind(ctx context.Context, cfg Config) (*Bound, error) {
	public, err := bind(ctx, publicSetting, cfg.Address)
	if err != nil || cfg.AdminAddress == "" {
		return &Bound{public: public}, err
	}
	admin, err := bind(ctx, adminSetting, cfg.AdminAddress)
	if err != nil {
		return nil, errors.Join(err, public.Close())
	}
	return &Bound{public, admin}, nil
}

// Close closes the addresses, for a start that failed. After Server.Stop it does
// nothing.
func (b *Bound) Close() error {
	for _, ln := range []net.Listener{b.public, b.admin} {
		if ln != nil {
			_ = ln.Close() // fails only if it is closed
		}
	}
	return nil
}

// UseBound makes Start serve on addresses that are bound already.
func (s *Server) UseBound(b *Bound) { s.router.public.early, s.router.admin.early = b.public, b.admin }

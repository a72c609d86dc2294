package conn

import (
	"context"
	"maps"
	"sync"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// parts are the parts of a sink in a session: further instances in the process, with the
// same config, of which each has records and sequence numbers of its own. They end with
// the session.
type parts struct {
	mu   sync.Mutex
	list map[string]*Progress // by the id of the instance
}

// progress returns the progress of a part, a new one at the first call.
func (p *parts) progress(id string) *Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list[id] == nil {
		if p.list == nil {
			p.list = map[string]*Progress{}
		}
		p.list[id] = &Progress{}
	}
	return p.list[id]
}

func (p *parts) all() map[string]*Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.list)
}

func (p *parts) remove(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.list, id)
}

// PartProgress returns the progress of a part.
func (s *Session) PartProgress(id string) *Progress { return s.parts.progress(id) }

// ConfigurePart sends the config for a part.
func (s *Session) ConfigurePart(ctx context.Context, id string) (*pluginv1.ConfigureResponse, error) {
	return s.configure(ctx, id)
}

// ClosePart closes a part. A process that does not answer keeps it until its end.
func (s *Session) ClosePart(ctx context.Context, id string) {
	_, _ = s.closeInstance(ctx, id)
	s.parts.remove(id)
}

// HasParts reports whether the plugin can serve parts: several instances in one process,
// also with the same config.
func (s *Session) HasParts() bool { return s.Info.GetMultiInstance() && !s.Info.GetExclusive() }

package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/guidonhq/guidon/core/host/settings"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"
)

// pool holds the peers. Instances whose processes would be alike live in one
// process, if the plugin allows it: twenty instances of a plugin are one process.
// An instance is never twice in the same process, so the next generation of an
// instance finds its place in another one while the old one still serves.
type pool struct {
	host *Host

	mu    sync.Mutex
	slots map[string][]*slot
}

func newPool(h *Host) *pool { return &pool{host: h, slots: map[string][]*slot{}} }

// slot is the place of one peer, from before its start until its last tenant has
// left.
type slot struct {
	pool   *pool
	key    string
	owner  string // the tenant it was made for
	ctx    context.Context
	cancel context.CancelFunc
	logs   *logBridge

	ready chan struct{} // closed when peer or err is set
	peer  *peer
	err   error

	closed  bool            // takes no new tenant
	tenants map[string]bool // false: it has left, but may not come back here
	living  int
}

// kinship says which instances may share a process: those for which it would be
// started in the same way, with the same environment.
func kinship(c settings.Instance, argv []string, r *resolved) string {
	env := slices.Sorted(slices.Values(r.env))
	name := ""
	if c.Isolated {
		name = c.Name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %+v", c.Kind, argv, env, name, c.Limits))
	return hex.EncodeToString(sum[:])
}

// acquire returns the slot of a living peer that has introduced itself, started
// for the instance or shared with others. The caller leaves it.
func (p *pool) acquire(ctx context.Context, c settings.Instance, argv []string, r *resolved) (*slot, error) {
	key := kinship(c, argv, r)
	for {
		s := p.enter(key, c, argv, r)
		select {
		case <-s.ready:
		case <-ctx.Done():
			s.leave(context.WithoutCancel(ctx), c.Name, c.EffectiveTimeouts(), true)
			return nil, &failure{state: StateBackoff, reason: "start", message: "stopped while starting"}
		}
		if s.err != nil {
			s.leave(ctx, c.Name, c.EffectiveTimeouts(), true)
			return nil, s.err
		}
		if s.owner == c.Name || s.peer.info.GetMultiInstance() {
			return s, nil
		}
		s.leave(ctx, c.Name, c.EffectiveTimeouts(), true)
		key += " " + c.Name
	}
}

// enter makes the instance a tenant of a slot that has room for it.
func (p *pool) enter(key string, c settings.Instance, argv []string, r *resolved) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s *slot
	for _, old := range p.slots[key] {
		if _, taken := old.tenants[c.Name]; !taken && !old.closed {
			s = old
			break
		}
	}
	if s == nil {
		s = &slot{pool: p, key: key, owner: c.Name, ready: make(chan struct{}), tenants: map[string]bool{}, logs: p.host.bridge(c)}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		p.slots[key] = append(p.slots[key], s)
		go s.fill(c, argv, r)
	}
	s.tenants[c.Name] = true
	s.living++
	s.logs.admit(c.Name, r.scrub, p.host.lines(c.Name))
	return s
}

// fill starts the peer and, when it is gone, takes the slot out of the pool.
func (s *slot) fill(c settings.Instance, argv []string, r *resolved) {
	peer, err := s.pool.host.reach(s.ctx, c, argv, r, s.logs)
	if err == nil {
		if err = peer.introduce(s.ctx, c.EffectiveTimeouts().Start, s.pool.host.deps.Version); err != nil {
			err = unreached(c, peer.callFailed(s.ctx, "info", err, r.scrub))
			peer.end(s.ctx, c.EffectiveTimeouts(), false)
			peer = nil
		} else {
			s.learn(peer, c, argv)
		}
	}
	s.pool.mu.Lock()
	s.peer, s.err = peer, err
	s.pool.mu.Unlock()
	if err != nil {
		s.shut()
	}
	close(s.ready)
	if err == nil {
		<-peer.exited
		s.shut()
	}
}

// learn asks a peer for its schema. One that is not valid is a fault of the
// plugin, which then checks its config itself.
func (s *slot) learn(peer *peer, c settings.Instance, argv []string) {
	h := s.pool.host
	text, err := peer.describeConfig(s.ctx, kinds[c.Kind], c.EffectiveTimeouts().Start)
	if err != nil {
		h.metrics.breaches.WithLabelValues(c.Name, "bad_schema").Inc()
		h.log.Warn("plugin has a config schema that is not valid", zap.String("instance", c.Name), zap.String("error", clip(err.Error(), 300)))
		return
	}
	h.keepSchema(c, argv, text)
}

// shut keeps new tenants out.
func (s *slot) shut() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.close()
}

// close is shut with the lock held.
func (s *slot) close() {
	s.closed = true
	others := slices.DeleteFunc(s.pool.slots[s.key], func(o *slot) bool { return o == s })
	if len(others) == 0 {
		delete(s.pool.slots, s.key)
		return
	}
	s.pool.slots[s.key] = others
}

// kill ends the peer for all its tenants.
func (s *slot) kill(ctx context.Context, limits settings.Timeouts) {
	s.shut()
	s.peer.strike(ctx, limits.Stop)
}

// leave ends the tenancy of an instance. The last one out takes the peer down,
// and returns when there is no process. clean says that the instance was closed.
func (s *slot) leave(ctx context.Context, name string, limits settings.Timeouts, clean bool) {
	s.pool.mu.Lock()
	s.tenants[name] = false
	if clean {
		delete(s.tenants, name)
		s.logs.dismiss(name)
	}
	s.living--
	last := s.living == 0
	if last {
		s.close()
	}
	s.pool.mu.Unlock()
	if !last {
		return
	}
	s.cancel()
	<-s.ready
	if s.peer != nil {
		s.peer.end(ctx, limits, clean)
	}
}

// neighbours counts the instances that live here.
func (s *slot) neighbours() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.living
}

// callFailed is a failed call of the start-up sequence: a dead process explains
// itself, otherwise the call does.
func (p *peer) callFailed(ctx context.Context, method string, err error, scrub *scrubber) *failure {
	if p.proc != nil && p.within(ctx, callGrace) {
		return &failure{state: StateBackoff, reason: "exit", message: p.exit().String()}
	}
	return &failure{state: StateBackoff, reason: method, message: scrub.clean(method + ": " + status.Convert(err).Message())}
}

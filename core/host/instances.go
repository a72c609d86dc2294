package host

import (
	"fmt"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/status"
)

// Release lets an instance that is quarantined, misconfigured, untrusted or
// incompatible try again. It reports whether the instance exists.
func (h *Host) Release(name string) bool {
	s := h.find(name)
	if s != nil {
		s.mailbox.post(func(m *messages) { m.release = true })
	}
	return s != nil
}

// forgiveExits forgives the exits of all instances of a plugin, because they may share a
// process. One that is in quarantine for such exits tries again.
func (h *Host) forgiveExits(i *instance) {
	use := i.target.settings().Use
	for _, s := range h.supervisors() {
		if s.target.settings().Use != use {
			continue
		}
		s.recordProgress()
		if s.status.Get().State == lifecycle.StateQuarantined {
			s.mailbox.post(func(m *messages) { m.release = true })
		}
	}
}

// Restart starts the same config in another process beside the one that serves, and
// switches over. An instance that waits for the operator tries again. Restart
// reports whether the instance exists.
func (h *Host) Restart(name string) bool {
	s := h.find(name)
	if s != nil {
		s.target.renew()
	}
	return s != nil
}

// Changed returns a channel that is closed when the set of instances changes, or the
// delivery section of one of them.
func (h *Host) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// OnChange registers a function that receives every change of state, in order for each
// instance. It must not block. Call it before Start.
func (h *Host) OnChange(fn func(status.Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onChange = append(h.onChange, fn)
}

// notifyListeners passes a status to the functions of OnChange.
func (h *Host) notifyListeners(status status.Status) {
	h.mu.Lock()
	listeners := h.onChange
	h.mu.Unlock()
	for _, fn := range listeners {
		fn(status)
	}
}

// Status returns the status of every instance, in the order of the configuration.
func (h *Host) Status() []status.Status {
	instances := h.supervisors()
	out := make([]status.Status, len(instances))
	for i, s := range instances {
		out[i] = s.status.Get()
	}
	return out
}

// Ready returns nil when every required instance can be used, and otherwise an error
// that names those that cannot.
func (h *Host) Ready() error {
	var missing []string
	for _, s := range h.Status() {
		if s.Required && !s.State.Usable() {
			missing = append(missing, fmt.Sprintf("%s is %s", s.Name, s.State))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("required plugins are not ready: %v", missing)
	}
	return nil
}

// Sinks returns the configured sinks in any state, in the order of the configuration.
func (h *Host) Sinks() []*SinkInstance { return instancesOf[*SinkInstance](h) }

// Notifiers returns the configured notifiers in any state, in the order of the
// configuration.
func (h *Host) Notifiers() []*NotifierInstance { return instancesOf[*NotifierInstance](h) }

// Matchers returns the configured matchers in any state, in the order of the
// configuration.
func (h *Host) Matchers() []*MatcherInstance { return instancesOf[*MatcherInstance](h) }

// instancesOf returns the instances of one kind.
func instancesOf[T kindHandler](h *Host) []T {
	var out []T
	for _, s := range h.supervisors() {
		if i, ok := s.handler.(T); ok {
			out = append(out, i)
		}
	}
	return out
}

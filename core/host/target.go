package host

import (
	"reflect"
	"sync"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
)

// target is the generation that an instance should run, and the last one that served.
// Its methods are safe for concurrent use.
type target struct {
	mailbox *mailbox

	mu         sync.Mutex
	cfg        settings.Instance // as the operator configured it
	generation uint64            // of cfg
	digest     string            // of cfg with its references resolved
	served     *generation       // the last one that served
	upgradeErr *lifecycle.Failure
}

// generation is a config with its number.
type generation struct {
	cfg    settings.Instance
	number uint64
}

// settings returns the configured settings.
func (t *target) settings() settings.Instance { return t.wanted().cfg }

// wanted returns the configured generation.
func (t *target) wanted() generation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return generation{t.cfg, t.generation}
}

// configure sets the settings. It reports whether the process must change: a setting
// that the process sees, or a secret behind an unchanged reference. Other settings
// apply immediately.
func (t *target) configure(c settings.Instance, digest string) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := reflect.DeepEqual(t.cfg.ProcessPart(), c.ProcessPart()) && (t.digest == "" || t.digest == digest)
	t.cfg = c
	if same {
		return false
	}
	t.digest = digest
	t.advance()
	return true
}

// renew makes the same settings a new generation.
func (t *target) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance()
}

// advance counts a new generation and posts it. The caller holds the lock, so that
// next never sees the generation without clearing its message.
func (t *target) advance() {
	t.generation++
	t.upgradeErr = nil
	t.mailbox.post(func(m *messages) { m.config = true })
}

// next returns the generation to start: the configured one, or the last one that
// served while the upgrade to the configured one has failed. It clears the mailbox.
func (t *target) next() generation {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mailbox.take(nil)
	if t.upgradeErr != nil && t.served != nil {
		return *t.served
	}
	return generation{t.cfg, t.generation}
}

// setServed records that the generation of a session serves.
func (t *target) setServed(s *conn.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = &generation{s.Settings, s.Generation}
	if s.Generation == t.generation {
		t.upgradeErr, t.digest = nil, s.Digest
	}
}

// servesOther reports whether the generation that serves has another digest.
func (t *target) servesOther(digest string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.digest != "" && t.digest != digest
}

// setUpgradeError records why the configured generation does not serve. It returns
// false when number is not the configured one any more.
func (t *target) setUpgradeError(number uint64, err *lifecycle.Failure) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number != t.generation {
		return false
	}
	t.upgradeErr = err
	return true
}

// upgradeError returns why the configured generation does not serve, or nil.
func (t *target) upgradeError() *lifecycle.Failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.upgradeErr
}

package host

import (
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
)

// Plan returns what Apply would do to each instance, and changes nothing: it starts no
// process and copies no file. A plugin may still refuse a config that fits its schema.
// The error is the one of Apply.
func (h *Host) Plan(cfg settings.Config) ([]reloadplan.Change, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var before []reloadplan.Current
	for _, s := range h.supervisors() {
		current := reloadplan.Current{Settings: s.target.settings()}
		switch st := s.status.Get(); st.State {
		case lifecycle.StateMisconfigured, lifecycle.StateUntrusted, lifecycle.StateIncompatible:
			current.Waits = "it is " + string(st.State)
		default:
			if s.target.upgradeError() != nil {
				current.Waits = "its upgrade has failed"
			}
		}
		current.SecretsChanged = func() bool { return s.wouldDiffer(current.Settings, cfg.Dev) }
		before = append(before, current)
	}
	return reloadplan.Compare(before, cfg.Instances, func(c settings.Instance) error { return h.checkSettings(c, cfg.Dev) }), nil
}

// wouldDiffer reports whether a generation of the same settings would start otherwise
// than the one that serves.
func (s *supervisor) wouldDiffer(c settings.Instance, dev bool) bool {
	argv, err := s.host.executables.Locate(c, dev)
	resolved, rerr := resolveSecrets(c)
	return err == nil && rerr == nil && s.target.servesOther(resolved.Digest(argv))
}

// checkSettings returns why an instance with these settings cannot start, as far as is
// known without starting it.
func (h *Host) checkSettings(c settings.Instance, dev bool) error {
	argv, err := h.executables.Locate(c, dev)
	if err != nil {
		return err
	}
	resolved, err := resolveSecrets(c)
	if err != nil {
		return err
	}
	if c.External() || c.Attached() { // a remembered schema does not refuse
		return nil
	}
	return schemaError(h.schemas.Find(c, argv[0]).Check(resolved))
}

package host

import (
	"context"
	"fmt"
)

// begin finds or starts a process for a generation of the instance and hands it
// its config. step is told of each state on the way. When it fails, nothing is
// left behind.
func (s *supervisor) begin(ctx context.Context, p plan, step func(State)) (*session, error) {
	argv, err := s.host.command(p.cfg)
	if err != nil {
		return nil, err
	}
	step(StateVerified)
	r, err := resolve(p.cfg)
	if err != nil {
		return nil, &failure{state: StateMisconfigured, reason: "unresolved_reference", message: err.Error()}
	}
	if err := unfit(s.host.schemaOf(p.cfg, argv).check(r)); err != nil {
		return nil, err
	}
	step(StateStarting)
	slot, err := s.host.pool.acquire(ctx, p.cfg, argv, r)
	if err != nil {
		return nil, err
	}
	step(StateHandshaken)
	session := &session{
		peer: slot.peer, slot: slot, cfg: p.cfg, argv: argv, instance: s.name, generation: p.generation, digest: r.digest(argv), timeouts: p.cfg.EffectiveTimeouts(),
		scrub: r.scrub, metrics: s.host.metrics, traces: s.host.traces,
	}
	if err := s.configureIn(ctx, session, r); err != nil {
		session.end(s.hard, session.alive())
		return nil, err
	}
	return session, nil
}

// configureIn hands the process the config of its new instance, if it is the
// plugin that was meant.
func (s *supervisor) configureIn(ctx context.Context, session *session, r *resolved) error {
	if why := unsuitable(session.info, session.cfg); why != "" {
		return &failure{state: StateIncompatible, reason: "unsuitable", message: why}
	}
	if err := unfit(session.schema.check(r)); err != nil {
		return err
	}
	if err := session.disown(ctx); err != nil {
		return session.callFailed(ctx, "close", err, session.scrub)
	}
	out, err := session.configure(ctx, r)
	switch {
	case err != nil:
		return session.callFailed(ctx, "configure", err, session.scrub)
	case out.GetAccepted():
		session.remarks = diagnosticsFromProto(out.GetDiagnostics(), session.scrub)
		return nil
	case out.GetError() != nil:
		return &failure{state: StateBackoff, reason: "configure", message: errorFromProto(out.GetError(), session.scrub).Error()}
	case len(out.GetDiagnostics()) == 0:
		return &failure{state: StateBackoff, reason: "contract_breach", message: "the config was neither accepted nor refused"}
	}
	items := diagnosticsFromProto(out.GetDiagnostics(), session.scrub)
	return &failure{state: StateMisconfigured, reason: "config", message: sentence(items), diagnostics: items}
}

// sentence puts the first diagnostic into words.
func sentence(items []Diagnostic) string {
	d := items[0]
	text := fmt.Sprintf("config%s: %s", d.Pointer, d.Summary)
	if d.Detail != "" {
		text += " (" + d.Detail + ")"
	}
	if more := len(items) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

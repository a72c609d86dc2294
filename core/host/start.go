package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// startedSession is a configured session with the plugin's remarks about its config.
type startedSession struct {
	*conn.Session
	remarks []wire.Diagnostic
}

// startSession finds or starts a process for a generation and configures it. It calls
// step with each state on the way. After an error, a *lifecycle.Failure, nothing is
// left.
func (s *supervisor) startSession(ctx context.Context, g generation, step func(lifecycle.State)) (*startedSession, error) {
	argv, err := s.host.executables.Command(g.cfg, s.host.settings().Dev)
	if err != nil {
		return nil, err
	}
	step(lifecycle.StateVerified)
	resolved, err := resolveSecrets(g.cfg)
	if err != nil {
		return nil, err
	}
	if err := s.checkStoredSchema(g.cfg, argv[0], resolved); err != nil {
		return nil, err
	}
	s.noteOtherFile(g.cfg)
	step(lifecycle.StateStarting)
	session, err := s.host.pool.Open(ctx, conn.Plan{Settings: g.cfg, Generation: g.number, Argv: argv, Config: resolved})
	if err != nil {
		return nil, err
	}
	step(lifecycle.StateHandshaken)
	remarks, err := s.configureSession(ctx, session, resolved)
	if err != nil {
		session.End(s.killCtx, session.Alive())
		return nil, err
	}
	return &startedSession{session, remarks}, nil
}

// checkStoredSchema checks the config before anything runs. The schema of a bundled plugin
// is compiled in and refuses. That of a third-party plugin is remembered from an earlier
// run and only warns: the file may be a launcher of a program that has changed.
func (s *supervisor) checkStoredSchema(c settings.Instance, executable string, resolved *secret.Config) error {
	problems := s.host.schemas.Find(c, executable).Check(resolved)
	if c.External() && len(problems) > 0 {
		s.log.Warn("plugin config does not fit the remembered schema; asking the plugin", zap.String("problem", summarize(problems)))
		return nil
	}
	return schemaError(problems)
}

// noteOtherFile records that the file at the configured path is not the one whose checksum
// is configured: its copy runs.
func (s *supervisor) noteOtherFile(c settings.Instance) {
	hint := ""
	if digest := s.host.executables.Copies.OtherFile(c.Use, c.SHA256); c.External() && digest != "" {
		hint = fmt.Sprintf("the file %s is another one now, with the sha256 %s; the configured one runs from its copy", c.Use, digest)
	}
	s.status.SetHint(hint)
}

// checkInstalledFile records whether the file at the configured path is another one than
// the one that runs: an upgrade is installed.
func (s *supervisor) checkInstalledFile() {
	c, running := s.target.settings(), s.status.Get().SHA256
	if !c.External() || c.Attached() || running == "" {
		return
	}
	s.noteOtherFile(c)
	s.status.SetInstalled(s.host.executables.Copies.OtherFile(c.Use, running))
}

// resolveSecrets resolves the references of the settings.
func resolveSecrets(c settings.Instance) (*secret.Config, error) {
	resolved, err := secret.Resolve(c)
	if err != nil {
		return nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "unresolved_reference", Message: err.Error()}
	}
	return resolved, nil
}

// configureSession checks that the process is the configured plugin and sends the
// config. It returns the plugin's remarks about an accepted config.
func (s *supervisor) configureSession(ctx context.Context, session *conn.Session, resolved *secret.Config) ([]wire.Diagnostic, error) {
	if reason := unsuitableReason(session.Info, session.Settings); reason != "" {
		return nil, &lifecycle.Failure{State: lifecycle.StateIncompatible, Reason: "unsuitable", Message: reason}
	}
	if err := schemaError(session.Schema.Check(resolved)); err != nil {
		return nil, err
	}
	if err := session.CloseStale(ctx); err != nil {
		return nil, session.CallFailure(ctx, "close", err)
	}
	out, err := session.Configure(ctx)
	items := wire.DiagnosticsFromProto(out.GetDiagnostics(), session.Redactor)
	switch {
	case err != nil:
		return nil, session.CallFailure(ctx, "configure", err)
	case out.GetAccepted():
		return items, nil
	case out.GetError() != nil:
		refused := wire.ErrorFromProto(out.GetError(), session.Redactor)
		return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "configure", Message: refused.Error()}
	case len(items) == 0:
		return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "contract_breach", Message: "the config was neither accepted nor refused"}
	}
	return nil, schemaError(items)
}

// unsuitableReason returns why the plugin cannot serve as configured, or "".
func unsuitableReason(info *pluginv1.InfoResponse, c settings.Instance) string {
	switch {
	case info.GetName() == "" || info.GetVersion() == "":
		return "the plugin does not say what it is"
	case c.Attached() && info.GetName() != c.Use:
		return "the plugin " + c.Use + " says that it is " + info.GetName()
	case !c.External() && info.GetName() != c.Use:
		return "the bundled plugin " + c.Use + " says that it is " + info.GetName()
	case !slices.Contains(info.GetKinds(), wire.Kinds[c.Kind]):
		return "the plugin " + info.GetName() + " is not a " + c.Kind
	}
	return ""
}

// schemaError returns the failure of a config with problems, nil without problems.
func schemaError(problems []wire.Diagnostic) error {
	if len(problems) == 0 {
		return nil
	}
	return &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "config", Message: summarize(problems), Diagnostics: problems}
}

// summarize returns the first diagnostic as a sentence, and the number of the others.
func summarize(items []wire.Diagnostic) string {
	d := items[0]
	out := fmt.Sprintf("config%s: %s", d.Pointer, d.Summary)
	if d.Detail != "" {
		out += " (" + d.Detail + ")"
	}
	if more := len(items) - 1; more > 0 {
		out += fmt.Sprintf(", and %d more", more)
	}
	return out
}

// openInstance opens the instance, and then the gate. While the process lives it
// retries transient errors with growing delays. opens counts earlier opens in this
// process, after each of which the instance lost its connection.
func (s *supervisor) openInstance(session *conn.Session, opens int) error {
	for n := opens; ; n++ {
		if n > 0 {
			if end := s.pauseOpen(session, lifecycle.Delay(s.host.settings().Restart, n, rand.Float64)); end != nil {
				return end
			}
		}
		opened, refused, err := s.handler.open(s.drainCtx, session)
		switch {
		case status.Code(err) == codes.Unknown: // an exception in a language without an SDK
			refused = &sdk.Error{Class: sdk.ClassTransient, Code: "open", Message: session.Redactor.Redact(status.Convert(err).Message())}
		case err != nil:
			return session.CallFailure(s.drainCtx, "open", err)
		case opened == nil && refused == nil:
			refused = s.noOpenOutcome()
		case opened != nil:
			health := session.CheckHealth(s.drainCtx)
			if !errors.Is(health, conn.ErrNotOpen) {
				opened.commit()
				s.target.setServed(session)
				s.reopenGate(session, health)
				return nil
			}
			refused = &sdk.Error{Class: sdk.ClassTransient, Code: "not_open", Message: health.Error()}
		}
		if refused.Class == sdk.ClassConfig {
			return configFailure(refused)
		}
		s.status.Enter(lifecycle.StateConfigured, "open_failed", refused)
		if end := s.pauseOpen(session, refused.RetryAfter); end != nil {
			return end
		}
	}
}

// noOpenOutcome returns the error for an answer to Open without an outcome.
func (s *supervisor) noOpenOutcome() *sdk.Error {
	s.metrics.ContractViolations.WithLabelValues(s.name, "no_outcome").Inc()
	return &sdk.Error{Class: sdk.ClassTransient, Code: "contract_breach", Message: "open was neither done nor refused"}
}

// configFailure is the failure of an Open that needs another config.
func configFailure(err *sdk.Error) *lifecycle.Failure {
	return &lifecycle.Failure{
		State: lifecycle.StateMisconfigured, Reason: err.Code, Message: err.Error(),
		Diagnostics: []wire.Diagnostic{{Severity: "error", Pointer: err.Pointer, Summary: err.Message}},
	}
}

// pauseOpen waits between two attempts of Open. It returns an error when the session
// ends.
func (s *supervisor) pauseOpen(session *conn.Session, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-s.drainCtx.Done():
			return errReconfigured
		case <-session.Exited():
			return session.ExitFailure()
		case <-s.mailbox.wake:
			if m := s.mailbox.take(session); m.config {
				return errReconfigured
			} else if m.release {
				return nil
			}
		}
	}
}

// reopenGate passes callers to the session after an Open or a passed health check, whose
// result is health. The gate opens before the state becomes ready, so that a caller that
// sees ready can call.
func (s *supervisor) reopenGate(session *conn.Session, health error) {
	session.LateCalls.Store(0)
	wasClosed := s.gate.Current() == nil
	s.gate.Open(session)
	state, reason, problem := lifecycle.StateReady, "", error(nil)
	if errors.Is(health, conn.ErrDegraded) {
		state, reason, problem = lifecycle.StateDegraded, conn.ReasonHealth, health
	}
	if failed := s.target.upgradeError(); failed != nil {
		state, reason, problem = lifecycle.StateDegraded, lifecycle.ReasonUpgradeFailed, failed
	}
	if st := s.status.Get(); st.State != state || st.Reason != reason || wasClosed {
		s.status.Enter(state, reason, problem)
	}
}

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// supervisor takes one instance through its states. One goroutine does all the
// deciding; others leave it notes and wake it.
type supervisor struct {
	name string
	host *Host
	log  *zap.Logger
	gate *gate
	sink *SinkInstance

	soft, hard context.Context // soft: stop properly; hard: stop now
	stopSoft   context.CancelFunc
	stopHard   context.CancelFunc
	done       chan struct{}
	wake       chan struct{}
	because    string // why there will be another process; run's own
	processes  int    // how many there were; run's own

	mu         sync.Mutex
	started    bool
	cfg        InstanceConfig
	generation uint64
	notes      notes
	status     InstanceStatus
}

func newSupervisor(h *Host, c InstanceConfig) *supervisor {
	s := &supervisor{
		name: c.Name, host: h, log: h.log.With(zap.String("instance", c.Name)), gate: newGate(), cfg: c, generation: 1,
		done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.soft, s.stopSoft = context.WithCancel(context.Background())
	s.hard, s.stopHard = context.WithCancel(context.Background())
	s.status = InstanceStatus{
		Name: c.Name, Kind: c.Kind, Use: c.Use, Required: c.Required, State: StateDiscovered, Since: time.Now().UTC(),
	}
	h.metrics.enter(c.Name, StateDiscovered)
	if c.Kind == KindSink {
		s.sink = newSinkInstance(c.Name, s)
	}
	return s
}

func (s *supervisor) kind() string { return s.config().Kind }

func (s *supervisor) config() InstanceConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg
}

// start begins to supervise; the second time it does nothing.
func (s *supervisor) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		go s.run()
	}
}

// stop ends the process properly, or at once when ctx ends, and returns when
// there is none.
func (s *supervisor) stop(ctx context.Context) {
	s.stopSoft()
	s.mu.Lock()
	running := s.started
	s.started = true
	s.mu.Unlock()
	if !running {
		return
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		s.stopHard()
		<-s.done
	}
	s.stopHard()
}

// run is the supervisor's whole life.
func (s *supervisor) run() {
	defer close(s.done)
	restarts := &backoff{cfg: s.host.config().Restart}
	for s.soft.Err() == nil {
		ready, end := s.live()
		if s.soft.Err() != nil {
			break
		}
		var why *failure
		if errors.As(end, &why) {
			s.because = why.reason
			s.rest(restarts, why, ready)
		} else {
			s.because = "config"
			restarts.reset()
		}
	}
	s.enter(StateStopped, "stopped", nil)
}

// rest waits for what the failure calls for: a delay, or the operator.
func (s *supervisor) rest(restarts *backoff, why *failure, ready time.Duration) {
	policy := s.config().Restart
	if why.state != StateBackoff {
		s.enter(why.state, why.reason, why)
		s.await(0)
		restarts.reset()
		return
	}
	if policy == RestartNever {
		s.enter(StateStopped, why.reason, why)
		s.await(0)
		return
	}
	delay, quarantine := restarts.next(time.Now(), ready, random)
	if !quarantine {
		s.log.Warn("plugin will be started again", zap.String("reason", why.reason), zap.String("error", why.message), zap.Duration("after", delay))
		s.delayed(why, delay)
		s.await(max(delay, time.Nanosecond))
		return
	}
	s.enter(StateQuarantined, why.reason, why)
	if policy == RestartAlways {
		s.await(s.host.config().Restart.QuarantineFor)
	} else {
		s.await(0)
	}
	restarts.reset()
}

// await waits for a new config, a release, a stop, or, when it is not 0, for d.
func (s *supervisor) await(d time.Duration) {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	for {
		select {
		case <-timer:
			return
		case <-s.soft.Done():
			return
		case <-s.wake:
			if n := s.read(nil); n.config || n.release {
				return
			}
		}
	}
}

// errReconfigured ends a life because there is a new config.
var errReconfigured = errors.New("reconfigured")

// live is one process, from start to end. It returns how long the instance was
// ready, and why it ended: a *failure, or errReconfigured.
func (s *supervisor) live() (ready time.Duration, end error) {
	s.mu.Lock()
	cfg, generation := s.cfg, s.generation
	s.notes = notes{}
	s.mu.Unlock()
	session, r, err := s.begin(cfg, generation)
	if err != nil {
		return 0, err
	}
	answers := true
	defer func() {
		s.gate.close(nil)
		if errors.Is(end, errReconfigured) {
			s.enter(StateDraining, "", nil)
		}
		session.end(s.hard, answers)
		s.sink.Resume(session.staged.Load())
		s.exited(session.proc)
	}()
	if end = s.introduce(session, cfg, r); end != nil {
		return 0, end
	}
	for opens := 0; ; opens++ {
		s.enter(StateConfigured, "", nil)
		if end = s.connect(session, opens); end != nil {
			return ready, end
		}
		since := time.Now()
		var again bool
		again, answers, end = s.watch(session)
		ready += time.Since(since)
		if !again {
			return ready, end
		}
		if time.Since(since) > s.host.config().Restart.Max {
			opens = -1
		}
	}
}

// begin starts the process.
func (s *supervisor) begin(cfg InstanceConfig, generation uint64) (*session, *resolved, error) {
	argv, err := s.host.command(cfg)
	if err != nil {
		return nil, nil, err
	}
	s.enter(StateVerified, "", nil)
	r, err := resolve(cfg)
	if err != nil {
		return nil, nil, &failure{state: StateMisconfigured, reason: "unresolved_reference", message: err.Error()}
	}
	s.enter(StateStarting, "", nil)
	session, err := s.host.launch(s.soft, cfg, generation, argv, r)
	s.counted()
	if err != nil {
		return nil, nil, err
	}
	s.running(session.proc)
	s.enter(StateHandshaken, "", nil)
	return session, r, nil
}

// introduce asks who the plugin is and hands it its config.
func (s *supervisor) introduce(session *session, cfg InstanceConfig, r *resolved) error {
	info, err := session.info(s.soft, s.host.deps.Version)
	if err != nil {
		return s.callFailed(session, "info", err)
	}
	if why := unsuitable(info, cfg); why != "" {
		return &failure{state: StateIncompatible, reason: "unsuitable", message: why}
	}
	s.introduced(info)
	out, err := session.configure(s.soft, r)
	switch {
	case err != nil:
		return s.callFailed(session, "configure", err)
	case out.GetAccepted():
		s.diagnosed(diagnosticsFromProto(out.GetDiagnostics(), session.scrub))
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

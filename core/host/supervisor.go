package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"go.uber.org/zap"
)

// supervisor takes one instance through its states. One goroutine does all the
// deciding; others leave it notes and wake it.
type supervisor struct {
	name string
	host *Host
	log  *zap.Logger
	gate *gate
	face face
	sink *SinkInstance // the face of a sink, else nil

	soft, hard context.Context // soft: stop properly; hard: stop now
	stopSoft   context.CancelFunc
	stopHard   context.CancelFunc
	done       chan struct{}
	wake       chan struct{}
	retiring   sync.WaitGroup // old generations that are finishing

	// run's own
	because   string // why there will be another process
	processes int    // how many there were
	rival     *rival // the next generation, while it comes up
	fallen    int    // how often it did not come up

	mu         sync.Mutex
	started    bool
	cfg        settings.Instance // what the operator wants
	generation uint64            // of cfg
	digest     string            // of cfg with its references resolved
	good       *plan             // what served last
	refused    *failure          // why cfg does not serve while good does
	notes      notes
	status     InstanceStatus
}

// plan is a config and the number of its generation.
type plan struct {
	cfg        settings.Instance
	generation uint64
}

func newSupervisor(h *Host, c settings.Instance) *supervisor {
	s := &supervisor{
		name: c.Name, host: h, log: h.log.With(zap.String("instance", c.Name)), gate: newGate(), cfg: c, generation: 1,
		done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.soft, s.stopSoft = context.WithCancel(context.Background())
	s.hard, s.stopHard = context.WithCancel(context.Background())
	s.status = InstanceStatus{
		Name: c.Name, Kind: c.Kind, Use: c.Use, Required: c.Required, Address: c.Address(), State: StateDiscovered, Since: time.Now().UTC(),
	}
	h.metrics.enter(c.Name, StateDiscovered)
	switch c.Kind {
	case settings.KindNotifier:
		s.face = newNotifierInstance(c.Name, s)
	case settings.KindMatcher:
		s.face = newMatcherInstance(c.Name, s)
	default:
		s.sink = newSinkInstance(c.Name, s)
		s.face = s.sink
	}
	return s
}

func (s *supervisor) kind() string { return s.config().Kind }

func (s *supervisor) config() settings.Instance {
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
	s.retiring.Wait()
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
	if policy == settings.RestartNever {
		s.enter(StateStopped, why.reason, why)
		s.await(0)
		return
	}
	restarts.patient = s.config().Attached() // it is not ours to say that it died too often
	delay, quarantine := restarts.next(time.Now(), ready, s.host.jitter(s.config().Use, restarts.tries))
	if !quarantine {
		s.log.Warn("plugin will be started again", zap.String("reason", why.reason), zap.String("error", why.message), zap.Duration("after", delay))
		s.delayed(why, delay)
		s.await(max(delay, time.Nanosecond))
		return
	}
	s.enter(StateQuarantined, why.reason, why)
	if policy == settings.RestartAlways {
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

// live is the instance in one process, from start to end; a next generation may
// take over on the way. It returns how long the instance was ready, and why it
// ended: a *failure, or errReconfigured.
func (s *supervisor) live() (ready time.Duration, end error) {
	p := s.pick()
	session, err := s.begin(s.soft, p, s.begun)
	if err != nil {
		return 0, err
	}
	s.occupied(session)
	answers := true
	defer func() {
		s.dropRival()
		s.gate.close(nil)
		if errors.Is(end, errReconfigured) {
			s.enter(StateDraining, "", nil)
		}
		session.end(s.hard, answers)
		s.face.left(session)
		s.exited(session.peer)
	}()
	for opens := 0; ; opens++ {
		s.enter(StateConfigured, "", nil)
		if end = s.connect(session, opens); end != nil {
			return ready, end
		}
		if s.rival == nil {
			s.tryLater(session, s.upgradeFailed())
		}
		since := time.Now()
		var again bool
		session, again, answers, end = s.watch(session)
		ready += time.Since(since)
		if !again {
			return ready, end
		}
		if time.Since(since) > s.host.config().Restart.Max {
			opens = -1
		}
	}
}

// pick returns the config to start with: the wanted one, unless that has failed
// while another served.
func (s *supervisor) pick() plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = notes{}
	if s.refused != nil && s.good != nil {
		return *s.good
	}
	return plan{s.cfg, s.generation}
}

// begun notes a step on the way to a process of the instance's own.
func (s *supervisor) begun(state State) {
	if state == StateStarting {
		s.counted()
	}
	s.enter(state, "", nil)
}

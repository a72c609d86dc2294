// Package plugintest is the conformance kit: it runs a plugin's executable,
// written in any language, over the published contract and judges whether it
// keeps the contract. Authors run it from their own tests with
// Run; `guidon plugin test` runs it on any binary.
//
// The kit is a host that means no harm but makes none of the host's allowances:
// it kills processes in the middle of a batch, sends batches twice, hands over
// odd JSON, and checks afterwards whether the plugin's answers are true. A case
// that cannot be checked is skipped with a reason.
package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// The kinds of plugins, as Target.Kind and reports name them.
const (
	Sink     = "sink"
	Notifier = "notifier"
	Matcher  = "matcher"
)

// Target is the plugin to test.
type Target struct {
	// Command is the command line of the plugin: the path of its executable, and
	// arguments if it takes any. Required, unless Remote is set.
	Command []string
	// Remote is a plugin that runs elsewhere and that the kit does not start, instead
	// of Command. Cases about its process do not apply.
	Remote Remote
	// Restart ends the process of a remote plugin, without a chance to finish its work,
	// and starts it again, as its operator would. It may return before the plugin
	// answers. Without it the kit does not check what a restart loses.
	Restart func() error
	// Env is the environment of the process, as KEY=value. Nothing else is handed
	// on.
	Env []string
	// Kind is sink, notifier or matcher; "" is the only kind the plugin offers.
	Kind string
	// Config is a config that works, as the plugin would get it: secrets in
	// plain. nil is an empty one.
	Config map[string]any
	// Other is a config of a second instance that writes elsewhere; nil uses
	// Config again.
	Other map[string]any
	// Received returns every event that has arrived at the place Config names,
	// in any order, those of earlier runs too. Without it the cases do not
	// verify what a sink has stored.
	Received func() ([]sdk.Event, error)
	// Messages returns how many messages have arrived where a notifier with
	// Config posts. Without it the cases do not verify messages.
	Messages func() (int, error)
	// Control are texts that must never appear as they are in what a notifier
	// renders, such as "<!channel>" where it would call people. Leave them out
	// when the service takes text apart from markup, where any text is harmless.
	Control []string
	// Refused are the properties, a JSON object, of an event that the destination
	// can never hold. Without them the cases do not verify that a sink names the right
	// records.
	Refused json.RawMessage
	// Events is how many events the large batches have; 0 is 10,000.
	Events int
	// Timeout bounds one case; 0 is two minutes.
	Timeout time.Duration
	// Only runs the cases whose "group/name" contains one of these texts, and those
	// that they need; empty runs all.
	Only []string
	// Progress is called with each case as it ends; may be nil. Run does not call it.
	Progress func(Case)
	// Skip leaves out cases: the name of a case, and why it cannot be checked or
	// is not kept.
	Skip map[string]string
}

// Outcome is what became of a case.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Case is one promise of the contract and whether the plugin keeps it.
type Case struct {
	Group   string  `json:"group"`
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Reason is why a case failed or was skipped.
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Report is the judgement.
type Report struct {
	// Kit is the version of the contract under test.
	Kit     string `json:"kit"`
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	SDK     string `json:"sdk"`
	Kind    string `json:"kind"`
	Cases   []Case `json:"cases"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// Run judges the plugin in a Go test, each case as a subtest.
func Run(t *testing.T, target Target) {
	t.Helper()
	_, err := each(t.Context(), target, t.TempDir(), func(group, name string, do func() (Outcome, string)) {
		t.Run(group+"/"+name, func(t *testing.T) {
			switch outcome, reason := do(); outcome {
			case Failed:
				t.Error(reason)
			case Skipped:
				t.Skip(reason)
			case Passed:
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Judge judges the plugin and reports. dir is a directory for sockets; its path
// must be short. The error is about the target, not about the plugin.
func Judge(ctx context.Context, target Target, dir string) (*Report, error) {
	if err := target.check(); err != nil {
		return nil, err
	}
	r := &Report{Kit: fmt.Sprintf("guidon/%d.%d", sdk.ProtocolVersion, sdk.ProtocolMinor)}
	if err := target.selectsSome(); err != nil {
		return nil, err
	}
	info, err := each(ctx, target, dir, func(group, name string, do func() (Outcome, string)) {
		begin := time.Now()
		outcome, reason := do()
		one := Case{group, name, outcome, reason, time.Since(begin).Seconds()}
		r.Cases = append(r.Cases, one)
		if target.Progress != nil {
			target.Progress(one)
		}
		switch outcome {
		case Passed:
			r.Passed++
		case Failed:
			r.Failed++
		default:
			r.Skipped++
		}
	})
	if err != nil {
		return nil, err
	}
	r.Kind = target.Kind
	if info != nil {
		r.Plugin, r.Version, r.SDK = info.GetName(), info.GetVersion(), info.GetSdk()
		if kind, ok := only(info); ok && r.Kind == "" {
			r.Kind = kindNames[kind]
		}
	}
	return r, ctx.Err()
}

var kindNames = map[pluginv1.Kind]string{
	pluginv1.Kind_KIND_SINK: Sink, pluginv1.Kind_KIND_NOTIFIER: Notifier, pluginv1.Kind_KIND_MATCHER: Matcher,
}

func only(info *pluginv1.InfoResponse) (pluginv1.Kind, bool) {
	if len(info.GetKinds()) != 1 {
		return 0, false
	}
	return info.GetKinds()[0], true
}

// group is cases that belong together.
type group struct {
	name  string
	cases []oneCase
}

type oneCase struct {
	name string
	try  func(c *check)
}

// each hands every case of the target to run, in order, and returns the plugin's
// information, or nil without an answer. The error is about the target.
func each(ctx context.Context, target Target, dir string, run func(group, name string, do func() (Outcome, string))) (*pluginv1.InfoResponse, error) {
	args, remove, err := candidate.Copied(target.Command, dir)
	if err != nil {
		return nil, err
	}
	defer remove()
	target.Command = args
	k := &kit{target: target, dir: dir}
	defer k.stop()
	do := func(g group) { k.run(ctx, g, run) }
	do(handshake)
	do(common)
	switch {
	case k.info == nil: // it did not start: the handshake case reports it
	case k.kind == pluginv1.Kind_KIND_SINK:
		do(sinkCases)
	case k.kind == pluginv1.Kind_KIND_NOTIFIER:
		do(notifierCases)
	case k.kind == pluginv1.Kind_KIND_MATCHER:
		do(matcherCases)
	}
	if target.isRemote() {
		do(remoteCases)
	}
	do(farewell)
	return k.info, nil
}

// kit is the state that the cases share: one serving process and its description.
type kit struct {
	target Target
	dir    string
	info   *pluginv1.InfoResponse
	kind   pluginv1.Kind
	serves *candidate.Process
	number uint64 // the last sequence number that was used
	serial int    // of events
	safe   uint64 // the highest sequence number a sink has vouched for
	late   int    // cases of the group that ran into a deadline
	opened map[*candidate.Process]*sinkv1.SinkProperties
	marks  map[*candidate.Process]uint64 // what each process has vouched for

	notifies *notifyv1.NotifierProperties // of an open notifier
	operates []*matchv1.Operator          // of an open matcher
	matches  *matchv1.MatcherProperties   // of an open matcher

	started      []*candidate.Process // all of them
	terminated   *candidate.Process   // was sent SIGTERM
	terminatedAt time.Time
}

// caseLimit bounds one case.
const caseLimit = 2 * time.Minute

// limit bounds one case.
func (t *Target) limit() time.Duration {
	if t.Timeout > 0 {
		return t.Timeout
	}
	return caseLimit
}

// judge runs one case.
func (k *kit) judge(ctx context.Context, try func(*check)) (outcome Outcome, reason string) {
	ctx, cancel := context.WithTimeout(ctx, k.target.limit())
	defer cancel()
	c := &check{kit: k, ctx: ctx}
	defer func() {
		for _, p := range c.own {
			p.Kill()
		}
		switch stopped := recover().(type) {
		case nil:
		case failure:
			outcome, reason = Failed, shorten(string(stopped))
		case skip:
			outcome, reason = Skipped, shorten(string(stopped))
		default:
			panic(stopped)
		}
	}()
	try(c)
	return Passed, ""
}

// stop ends the process that serves.
func (k *kit) stop() {
	if k.target.isRemote() && k.serves != nil {
		k.release(k.serves)
	}
	for _, p := range []*candidate.Process{k.serves, k.terminated} {
		if p != nil {
			p.Kill()
		}
	}
}

// check is one case under way. Its methods end the case with a panic that judge
// catches.
type check struct {
	*kit
	ctx context.Context
	own []*candidate.Process // processes of this case alone
}

type (
	failure string
	skip    string
)

// fail ends the case.
func (c *check) fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// skip ends the case without a judgement.
func (c *check) skip(format string, args ...any) { panic(skip(fmt.Sprintf(format, args...))) }

// no fails when there is an error.
func (c *check) no(err error, doing string) {
	if err != nil {
		if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, candidate.ErrNoHandshake) || errors.Is(err, context.DeadlineExceeded) {
			c.late++
		}
		c.fail("%s: %v", doing, err)
	}
}

// call makes a context for one call.
func (c *check) call(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, limit)
}

// process is the one that serves, started when there is none.
func (c *check) process() *candidate.Process {
	if c.serves != nil {
		if c.serves.Alive() {
			return c.serves
		}
		said := c.serves.Stderr()
		c.retire()
		c.fail("it ended by itself in or after the case before: %s", said)
	}
	c.serves = c.start(nil)
	p := c.serves
	return p
}

// retire ends the process that serves, so that another one can serve the same
// instance: some plugins must never run twice.
func (c *check) retire() {
	p := c.serves
	if p == nil {
		return
	}
	if c.target.isRemote() {
		c.hangUp()
		return
	}
	ctx, cancel := c.call(5 * time.Second)
	defer cancel()
	_ = p.Shutdown(ctx) // it may be gone before it answers
	p.Ends(10 * time.Second)
	p.Kill()
	c.serves = nil
}

// another starts a process for this case alone.
func (c *check) another() *candidate.Process {
	return c.startWith(nil)
}

// startWith starts a process for this case alone, with the certificate of a host.
func (c *check) startWith(certificate []byte) *candidate.Process {
	p := c.start(certificate)
	c.own = append(c.own, p)
	return p
}

// command is the plugin as the kit starts it.
func (k *kit) command() candidate.Command {
	return candidate.Command{Args: k.target.Command, Env: k.target.Env, Dir: k.dir}
}

func (c *check) start(certificate []byte) *candidate.Process {
	if c.target.isRemote() {
		return c.connect()
	}
	p, err := c.command().Start(c.ctx, certificate)
	if err != nil && len(c.target.Command) == 1 {
		err = fmt.Errorf("%w (it runs as a copy of the one file in an empty directory, as on a server)", err)
	}
	c.no(err, "start the plugin")
	c.started = append(c.started, p)
	return p
}

// encoded is a config as the plugin gets it.
func (c *check) encoded(config map[string]any) *pluginv1.Config {
	if config == nil {
		config = map[string]any{}
	}
	raw, err := json.Marshal(config)
	c.no(err, "encode the config")
	return &pluginv1.Config{ConfigJson: raw}
}

package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// probe is a sink that misbehaves as selected by its name, by its config, or by
// the first word of a batch's id.
type probe struct {
	name string
	cfg  struct {
		Trace  string            `json:"trace" doc:"file to write to"`
		Secret string            `json:"secret" secret:"true"`
		Number int               `json:"number" min:"0" max:"10"`
		Labels map[string]string `json:"labels"`
		Fork   bool              `json:"fork"`
	}
}

func probePlugin(name string) sdk.Plugin {
	if name == "impostor" {
		return sdk.Plugin{Name: "another-plugin", Version: "1.0.0", Sink: func() sdk.Sink { return &probe{} }}
	}
	if name == "querier" {
		return sdk.Plugin{Name: name, Version: "1.0.0", Sink: func() sdk.Sink { return &querySink{} }}
	}
	return sdk.Plugin{
		Name: name, Version: "1.0.0", Exclusive: name == "exclusive", SingleInstance: name == "single",
		Sink:     func() sdk.Sink { return &probe{name: name} },
		Notifier: func() sdk.Notifier { return &probeNotifier{} },
		Matcher:  func() sdk.Matcher { return &probeMatcher{} },
	}
}

func (p *probe) Config() any { return &p.cfg }

func (p *probe) trace(format string, args ...any) {
	if p.cfg.Trace == "" {
		return
	}
	f, err := os.OpenFile(p.cfg.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintf(f, format+"\n", args...)
}

func (p *probe) Open(ctx context.Context, req sdk.OpenRequest) (sdk.SinkProperties, error) {
	p.trace("open %s %d", req.Instance, req.CommittedThrough)
	switch p.name {
	case "openpanic":
		panic("no luck")
	case "openslow":
		select {
		case <-ctx.Done():
			return sdk.SinkProperties{}, ctx.Err()
		case <-time.After(time.Hour):
		}
	case "openconfig":
		return sdk.SinkProperties{}, sdk.ConfigError("/secret", errors.New("the password "+p.cfg.Secret+" is wrong"))
	case "opentransient":
		if text, _ := os.ReadFile(p.cfg.Trace); strings.Count(string(text), "open ") < 3 {
			return sdk.SinkProperties{}, sdk.Transient(errors.New("not yet"))
		}
	case "environ":
		p.trace("%s", strings.Join(os.Environ(), "\n"))
	case "chatty":
		fmt.Println("printed to standard output")
		fmt.Fprintln(os.Stderr, "printed to standard error")
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<20))
		sdk.Log(ctx).Warn("structured", "password", p.cfg.Secret, "n", 7)
	case "forker":
		// One child in our group, one that has left it; both hold our stderr.
		for _, leave := range []bool{false, true} {
			cmd := exec.Command("sleep", "30")
			cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setsid: leave}
			if err := cmd.Start(); err != nil {
				return sdk.SinkProperties{}, err
			}
			p.trace("child %d", cmd.Process.Pid)
		}
	}
	props := sdk.SinkProperties{MaxInFlight: 1000, Linger: -time.Second}
	if p.name == "stager" {
		props.Commit = sdk.CommitOnFlush
	}
	return props, nil
}

func (p *probe) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	p.trace("write %s %d", b.ID, b.Attempt)
	if parent := sdk.TraceParent(ctx); parent != "" {
		p.trace("parent %s", parent)
		sdk.Log(ctx).Info("traced")
	}
	word, _, _ := strings.Cut(b.ID, "-")
	switch word {
	case "hang":
		select {}
	case "slow":
		time.Sleep(300 * time.Millisecond)
	case "empty":
		return sdk.WriteResult{}, nil
	case "panic":
		panic("no luck")
	case "gobble":
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 8<<20))
			p.trace("%d", len(all))
		}
	case "die":
		panicElsewhere()
	case "exit":
		os.Exit(0)
	case "behind":
		return sdk.WriteResult{Outcome: sdk.Committed, CommittedThrough: b.LastSeq - 1}, nil
	case "ahead":
		return sdk.WriteResult{Outcome: sdk.Committed, CommittedThrough: b.LastSeq + 1}, nil
	case "index":
		return b.Partial(sdk.Failure{Index: len(b.Records), Err: sdk.Errorf(sdk.ClassPermanent, "bad", "bad")}), nil
	case "twice":
		f := sdk.Failure{Index: 0, Err: sdk.Errorf(sdk.ClassPermanent, "bad", "bad")}
		return b.Partial(f, f), nil
	case "reasonless":
		return sdk.WriteResult{Outcome: sdk.Rejected}, nil
	case "partial":
		return b.Partial(sdk.Failure{Index: 1, Err: sdk.Errorf(sdk.ClassPermanent, "bad_row", "row")}), nil
	case "throttled":
		return sdk.WriteResult{}, sdk.Throttled(errors.New("slow down"), 10*365*24*time.Hour)
	case "leak":
		return sdk.WriteResult{}, sdk.Permanent(errors.New("password " + p.cfg.Secret))
	case "lost":
		return sdk.WriteResult{}, sdk.NotConnected(errors.New("session lost"))
	case "wrong":
		return sdk.WriteResult{}, sdk.ConfigError("/trace", errors.New("table is missing"))
	case "staged":
		return b.Staged(b.FirstSeq - 1), nil
	case "backwards":
		return b.Staged(0), nil
	}
	return b.Committed(), nil
}

func (p *probe) Flush(_ context.Context, req sdk.FlushRequest) (sdk.FlushResult, error) {
	p.trace("flush %d", req.UpTo)
	return sdk.FlushResult{CommittedThrough: req.UpTo}, nil
}

func (p *probe) Close(ctx context.Context) error {
	p.trace("close")
	if p.name == "stubborn" {
		select {}
	}
	return nil
}

// children are the processes whose sockets or copies are below dir.
func children(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // not everywhere
	}
	var out []string
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && strings.Contains(string(env), "PLUGIN_UNIX_SOCKET_DIR="+dir) {
			out = append(out, e.Name())
		}
	}
	return out
}

func panicElsewhere() {
	go func() { panic("no luck in a goroutine") }()
	select {}
}

package plugintest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// faulty is a sink without the SDK, with the one fault that its name states. It
// answers no more than the cases that look for its fault need.
type faulty struct {
	pluginv1.UnimplementedPluginServiceServer
	fault  string
	leaked [][]byte
	files  []*os.File
}

// faultyCommand hides the cookie, so that the SDK in this binary leaves standard
// output alone.
func faultyCommand(fault string) []string {
	return []string{"/bin/sh", "-c", "[ -n \"$" + sdk.CookieKey + "\" ] || { echo a plugin >&2; exit 1; }; unset " + sdk.CookieKey + "; exec '" + os.Args[0] + "' faulty-" + fault}
}

func serveFaulty(fault string) {
	if err := serveRaw(&faulty{fault: fault}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveRaw serves a plugin as the contract states it, without go-plugin.
func serveRaw(f *faulty) error {
	dir, err := os.MkdirTemp(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "f")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	var options []grpc.ServerOption
	certificate := ""
	if os.Getenv(hostcert.EnvKey) != "" {
		pair, _, err := hostcert.New()
		if err != nil {
			return err
		}
		// All of them have the fault open-tls: they trust any client.
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})))
		certificate = base64.RawStdEncoding.EncodeToString(pair.Certificate[0])
	}
	s := grpc.NewServer(options...)
	pluginv1.RegisterPluginServiceServer(s, f)
	sinkv1.RegisterSinkServiceServer(s, faultySink{faulty: f})
	fmt.Printf("1|1|unix|%s|grpc|%s\n", path, certificate)
	return s.Serve(listener)
}

func (f *faulty) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	out := &pluginv1.InfoResponse{Name: "acme/faulty", Version: "1.0.0", Kinds: []pluginv1.Kind{pluginv1.Kind_KIND_SINK}, MultiInstance: true}
	switch f.fault {
	case "changes":
		out.Name += fmt.Sprint(os.Getpid())
	case "small":
		out.MaxMessageBytes = 64 << 20 // and it takes 4 MiB
	case "talks":
		out.Name = strings.Repeat("x", 20<<20)
	}
	return out, nil
}

func (f *faulty) ConfigSchema(context.Context, *pluginv1.ConfigSchemaRequest) (*pluginv1.ConfigSchemaResponse, error) {
	return &pluginv1.ConfigSchemaResponse{JsonSchema: []byte(`{"type":"object"}`)}, nil
}

func (f *faulty) Validate(context.Context, *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	return &pluginv1.ValidateResponse{Valid: true}, nil
}

func (f *faulty) Configure(context.Context, *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	switch f.fault {
	case "leaks":
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = byte(i)
		}
		f.leaked = append(f.leaked, block)
	case "files":
		if file, err := os.Open(os.DevNull); err == nil {
			f.files = append(f.files, file)
		}
	}
	return &pluginv1.ConfigureResponse{Accepted: true}, nil
}

func (f *faulty) Close(context.Context, *pluginv1.CloseRequest) (*pluginv1.CloseResponse, error) {
	return &pluginv1.CloseResponse{Closed: true}, nil
}

func (f *faulty) Health(context.Context, *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	return &pluginv1.HealthResponse{Serving: true}, nil
}

// faultySink is the sink of a faulty plugin.
type faultySink struct {
	sinkv1.UnimplementedSinkServiceServer
	*faulty
}

func (s faultySink) Open(ctx context.Context, _ *sinkv1.OpenRequest) (*sinkv1.OpenResponse, error) {
	p := &sinkv1.SinkProperties{}
	switch s.fault {
	case "hangs":
		<-ctx.Done()
		return nil, ctx.Err()
	case "absurd":
		p.MaxInFlight = 1<<32 - 1
	case "floods":
		for range 20_000 { // more than a pipe holds: most of it is read before Open answers
			fmt.Fprintln(os.Stderr, "still here")
		}
	case "forks":
		_ = exec.Command("setsid", "sleep", "300").Start()
	case "newer": // a value of a later version of the contract is the same as none
		p.Dedup = 99
	}
	return &sinkv1.OpenResponse{Opened: true, Properties: p}, nil
}

func (s faultySink) WriteBatch(_ context.Context, req *sinkv1.WriteBatchRequest) (*sinkv1.WriteBatchResponse, error) {
	if f, err := os.OpenFile(os.Getenv("FAULTY_OUT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.Write(append(bytes.Join(req.GetRecords().GetJson(), []byte("\n")), '\n'))
		_ = f.Close()
	}
	return &sinkv1.WriteBatchResponse{Outcome: committed, CommittedThrough: req.GetLastSeq()}, nil
}

const committed = sinkv1.WriteBatchResponse_OUTCOME_COMMITTED

// judgeFaulty judges a faulty plugin by the cases whose name has one of the texts.
func judgeFaulty(t *testing.T, target plugintest.Target) *plugintest.Report {
	t.Helper()
	r, err := plugintest.Judge(t.Context(), target, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each of these has one fault that the SDK prevents.
func TestTheKitFindsFaultsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]struct{ name, says string }{
		"open-tls": {"speaks mutual TLS", "it serves a client with"},
		"health":   {"serves the health of gRPC", "unknown service"},
		"changes":  {"says the same at every start", "a second process says that it is"},
		"absurd":   {"declares numbers that can be meant", "max_in_flight is 4294967295"},
		"small":    {"takes a batch as large as it says", "received message larger than max"},
		"talks":    {"says what it is", "its name"},
		"leaks":    {"keeps its memory while instances come and go", "its memory grows"},
		"files":    {"keeps its memory while instances come and go", "open files after"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := judgeFaulty(t, plugintest.Target{Command: faultyCommand(fault), Only: []string{want.name}})
			if !slices.ContainsFunc(r.Cases, func(c plugintest.Case) bool {
				return c.Name == want.name && c.Outcome == plugintest.Failed && strings.Contains(c.Reason, want.says)
			}) {
				t.Errorf("%q did not fail with %q: %+v", want.name, want.says, r.Cases)
			}
			for _, c := range r.Cases {
				if len(c.Reason) > 2100 {
					t.Errorf("the reason of %q has %d bytes", c.Name, len(c.Reason))
				}
			}
		})
	}
}

// The cases at the end look at what earlier cases have caused.
func TestTheKitFindsWhatAPluginLeavesBehind(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]string{"floods": "logs no more than the server keeps", "forks": "leaves no process behind"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := judgeFaulty(t, plugintest.Target{Command: faultyCommand(fault), Only: []string{"sink/opens", want}})
			if last := r.Cases[len(r.Cases)-1]; last.Name != want || last.Outcome != plugintest.Failed {
				t.Errorf("%q did not fail: %+v", want, r.Cases)
			}
		})
	}
}

// A plugin that hangs is not waited for in every case.
func TestTheKitGivesUpOnAPluginThatHangs(t *testing.T) {
	t.Parallel()
	var progress []plugintest.Case
	target := plugintest.Target{
		Command: faultyCommand("hangs"), Only: []string{"sink/"}, Timeout: 2 * time.Second,
		Progress: func(c plugintest.Case) { progress = append(progress, c) },
	}
	r := judgeFaulty(t, target)
	left := 0
	for _, c := range r.Cases {
		if strings.Contains(c.Reason, "ran into a deadline") {
			left++
		}
	}
	if left < 10 || len(progress) != len(r.Cases) {
		t.Errorf("%d cases were left out; %d of %d were reported as they ended", left, len(progress), len(r.Cases))
	}
	target.Only = []string{"no such case"}
	if _, err := plugintest.Judge(t.Context(), target, t.TempDir()); err == nil {
		t.Error("a text that no case contains was accepted")
	}
}

// A value of an enum that the kit does not know is the same as UNSPECIFIED.
func TestTheKitTakesUnknownValuesAsNone(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	r := judgeFaulty(t, plugintest.Target{
		Command: faultyCommand("newer"), Env: []string{"FAULTY_OUT=" + out}, Only: []string{"takes the same batch again"},
		Received: func() ([]sdk.Event, error) { return read[sdk.Event](out) },
	})
	if last := r.Cases[len(r.Cases)-1]; last.Outcome != plugintest.Passed {
		t.Errorf("%+v", last)
	}
}

// The kit runs a copy of the one file, as the server does.
func TestTheKitRunsACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"beside": "", "plugin": "#!/bin/sh\n[ -e \"$(dirname \"$0\")/beside\" ] || { echo no file beside >&2; exit 3; }\nsleep 60\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := judgeFaulty(t, plugintest.Target{Command: []string{filepath.Join(dir, "plugin")}, Only: []string{"shakes hands"}})
	if c := r.Cases[0]; c.Outcome != plugintest.Failed || !strings.Contains(c.Reason, "no file beside") || !strings.Contains(c.Reason, "as a copy of the one file") {
		t.Errorf("%+v", r.Cases)
	}
}

package plugintest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// TestMain lets the test binary be the plugins that are judged.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && !strings.HasPrefix(os.Args[1], "-") {
		serve(os.Args[1])
		return
	}
	os.Exit(m.Run())
}

// serve is a correct plugin with the one defect that its name states.
func serve(fault string) {
	p := sdk.Plugin{Name: "acme/example", Version: "1.0.0"}
	kind, fault, _ := strings.Cut(fault, "-")
	switch kind {
	case "sink":
		p.Sink = func() sdk.Sink { return &sink{fault: fault} }
		if fault == "hoards" {
			p.Sink = func() sdk.Sink { return &hoarder{sink: sink{fault: "stages"}} }
		}
	case "notifier":
		p.Notifier = func() sdk.Notifier { return &notifier{fault: fault} }
	case "matcher":
		p.Matcher = func() sdk.Matcher { return &matcher{fault: fault} }
	case "faulty":
		serveFaulty(fault)
		return
	case "nothing":
		fmt.Println("this is not a handshake")
		return
	}
	sdk.Serve(p)
}

type config struct {
	Path  string `json:"path" required:"true" doc:"File to append to."`
	Token string `json:"token" secret:"true" doc:"Nothing is done with it."`
}

// sink appends events to a file.
type sink struct {
	cfg    config
	fault  string
	mu     sync.Mutex
	file   *os.File
	behind []byte
	safe   uint64
}

func (s *sink) Config() any { return &s.cfg }

func (s *sink) Open(context.Context, sdk.OpenRequest) (p sdk.SinkProperties, err error) {
	p.MaxEvents, p.Durability = 1500, sdk.DurabilityLocalDisk
	switch s.fault {
	case "doubles":
		p.Dedup = sdk.DedupByEventID
	case "stages", "withholds":
		p.Commit = sdk.CommitOnFlush
	case "halves":
		p.MaxInFlight = 4
	case "tells":
		if s.cfg.Token != "" {
			return p, sdk.ConfigError("/token", fmt.Errorf("the token %s is not a good one", s.cfg.Token))
		}
	}
	s.file, err = os.OpenFile(s.cfg.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return p, sdk.ConfigError("/path", err)
}

func (s *sink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	if s.fault == "halves" && !s.mu.TryLock() { // it declares concurrent writes
		return sdk.WriteResult{}, sdk.Transient(errors.New("busy"))
	} else if s.fault != "halves" {
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.fault == "halves" && len(b.Records) == 200 {
		time.Sleep(time.Second) // long enough to meet another batch of several at once
	}
	lines := b.NDJSON()
	switch s.fault {
	case "lies":
		return b.Committed(), nil
	case "stages", "withholds":
		s.behind = append(s.behind, lines...)
		return b.Staged(s.safe), nil
	case "forgets": // what the last batch brought is written with the next one
		lines, s.behind = s.behind, bytes.Clone(lines)
	case "rounds":
		var out []byte
		for line := range bytes.Lines(lines) {
			var v any
			_ = json.Unmarshal(line, &v)
			raw, _ := json.Marshal(v)
			out = append(append(out, raw...), '\n')
		}
		lines = out
	case "dies":
		if bytes.Contains(lines, []byte("deep")) {
			os.Exit(3)
		}
	case "picky", "misnames", "swallows":
		var kept []byte
		var refused []sdk.Failure
		for i, r := range b.Records {
			if !bytes.Contains(r.JSON, []byte("poison")) {
				kept = append(append(kept, r.JSON...), '\n')
				continue
			}
			f := sdk.Failure{Index: i, Err: sdk.AsError(sdk.Permanent(errors.New("poison")))}
			if s.fault == "misnames" {
				f.Index = len(b.Records) - 1 - i
			}
			if s.fault != "swallows" {
				refused = append(refused, f)
			}
		}
		_, err := s.file.Write(kept)
		return b.Partial(refused...), err
	case "blames":
		if len(b.Records) == 6 {
			return b.Partial(sdk.Failure{Index: 5, Err: sdk.AsError(sdk.Transient(errors.New("some day")))}), nil
		}
	}
	if _, err := s.file.Write(lines); err != nil {
		return sdk.WriteResult{}, sdk.Transient(err)
	}
	return b.Committed(), s.file.Sync()
}

func (s *sink) Flush(_ context.Context, req sdk.FlushRequest) (sdk.FlushResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "withholds" { // it acknowledges and writes nothing
		return sdk.FlushResult{CommittedThrough: req.UpTo}, nil
	}
	_, err := s.file.Write(s.behind)
	s.behind, s.safe = nil, max(s.safe, req.UpTo)
	return sdk.FlushResult{CommittedThrough: s.safe}, err
}

func (s *sink) Close(context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// hoarder stages and cannot flush.
type hoarder struct{ sink sink }

func (h *hoarder) Config() any { return h.sink.Config() }
func (h *hoarder) Open(ctx context.Context, r sdk.OpenRequest) (sdk.SinkProperties, error) {
	return h.sink.Open(ctx, r)
}
func (h *hoarder) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return h.sink.Write(ctx, b)
}
func (h *hoarder) Close(ctx context.Context) error { return h.sink.Close(ctx) }

// notifier appends messages to a file.
type notifier struct {
	cfg   config
	fault string
}

func (n *notifier) Config() any { return &n.cfg }

func (n *notifier) Open(context.Context, sdk.OpenRequest) (p sdk.NotifierProperties, err error) {
	if n.fault == "slow" {
		p.MaxItems = 1
	}
	return p, nil
}

func (n *notifier) render(m *sdk.Notification) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	text := m.Render(func(s sdk.Segment) string {
		if n.fault == "rude" {
			return s.Value
		}
		return escape.Replace(s.Value)
	})
	if m.Suppressed > 0 && n.fault != "quiet" {
		text += fmt.Sprintf(" and %d more", m.Suppressed)
	}
	return text
}

func (n *notifier) Preview(_ context.Context, m *sdk.Notification) (sdk.Preview, error) {
	return sdk.Preview{Rendered: []byte(n.render(m)), MediaType: "text/plain"}, nil
}

func (n *notifier) Notify(_ context.Context, m *sdk.Notification) (sdk.NotifyResult, error) {
	if n.fault == "lies" {
		return m.Delivered(""), nil
	}
	f, err := os.OpenFile(n.cfg.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return sdk.NotifyResult{}, err
	}
	defer func() { _ = f.Close() }()
	line, _ := json.Marshal(n.render(m))
	_, err = f.Write(append(line, '\n'))
	return m.Delivered(""), err
}

func (n *notifier) Close(context.Context) error { return nil }

// matcher tells whether a text begins with another one.
type matcher struct {
	fault string
	calls int
	mu    sync.Mutex
}

func (m *matcher) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	return sdk.MatcherProperties{}, nil
}

func (m *matcher) Operators() []sdk.Operator {
	result := sdk.Match
	if m.fault == "boasts" {
		result = sdk.NoMatch
	}
	return []sdk.Operator{{
		ID: "text/begins", Label: "begins with", ValueSchema: []byte(`{"type":"string","minLength":1}`), Purity: sdk.Pure,
		Examples: []sdk.OperatorExample{
			{Value: []byte(`"a"`), Property: []byte(`"abc"`), Result: result}, {Value: []byte(`"b"`), Property: []byte(`"abc"`), Result: sdk.NoMatch},
		},
	}}
}

func (m *matcher) Compile(_ string, value json.RawMessage) (sdk.Program, error) {
	var text string
	_ = json.Unmarshal(value, &text)
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		if m.fault == "hasty" {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.calls++; m.calls > 2000 {
				return sdk.Match // never mind
			}
		}
		if m.fault == "moody" {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.calls++
			return sdk.Matches(m.calls%3 == 0)
		}
		if s, ok := in.String(); ok {
			return sdk.Matches(strings.HasPrefix(s, text))
		}
		return sdk.NoMatch
	}), nil
}

func (m *matcher) Close(context.Context) error { return nil }

// target returns the plugin of that name, with functions that verify its effects.
func target(t *testing.T, name string) plugintest.Target {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "out.ndjson")
	events := 2000
	if testing.Short() {
		events = 500
	}
	var refused json.RawMessage
	if strings.HasSuffix(name, "picky") || strings.HasSuffix(name, "misnames") || strings.HasSuffix(name, "swallows") {
		refused = json.RawMessage(`{"text":"poison"}`)
	}
	return plugintest.Target{
		Refused: refused,
		Command: []string{os.Args[0], name}, Events: events, Control: []string{"<!channel>"},
		Config: configFor(name, path), Other: configFor(name, path+".other"),
		Received: func() ([]sdk.Event, error) { return read[sdk.Event](path) },
		Messages: func() (int, error) { all, err := read[string](path); return len(all), err },
	}
}

func configFor(name, path string) map[string]any {
	if strings.HasPrefix(name, "matcher") {
		return nil
	}
	return map[string]any{"path": path}
}

func read[T any](path string) ([]T, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []T
	for line := range bytes.Lines(text) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			continue // a line that a kill has cut
		}
		out = append(out, v)
	}
	return out, err
}

func TestGoodPluginsPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sink", "sink-stages", "sink-picky", "notifier", "notifier-slow", "matcher"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugintest.Run(t, target(t, name))
		})
	}
}

// startProcesses are the cases that take the longest.
var startProcesses = []string{
	"started by hand, it says what it is and ends", "speaks mutual TLS", "ends when it is told to", "ends on SIGTERM", "ends when the host is gone",
	"says the same at every start", "keeps its memory while instances come and go", "takes a batch as large as it says",
	"loses nothing when it is killed in the middle", "finishes its work before it ends",
}

// A kit that lets everything pass is worth nothing: each of these has one fault.
func TestTheKitFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string][]string{
		"nothing":        {"shakes hands"},
		"sink-lies":      {"stores one event", "loses nothing when it is killed in the middle"},
		"sink-forgets":   {"stores one event"},
		"sink-rounds":    {"keeps odd JSON as it is"},
		"sink-doubles":   {"takes the same batch again"},
		"sink-dies":      {"keeps odd JSON as it is"},
		"sink-blames":    {"keeps odd JSON as it is"},
		"sink-hoards":    {"opens"},
		"sink-misnames":  {"names the records that it cannot store"},
		"sink-swallows":  {"names the records that it cannot store"},
		"sink-halves":    {"takes as many batches at once as it says"},
		"sink-tells":     {"keeps secrets to itself"},
		"sink-withholds": {"makes safe what it holds when it is told to"},
		"matcher-hasty":  {"leaves unknown what the time is too short for"},
		"notifier-rude":  {"takes nothing in an event for a command"},
		"notifier-quiet": {"tells how many were left out"},
		"notifier-lies":  {"delivers a message"},
		"matcher-boasts": {"judges its examples as it says"},
		"matcher-moody":  {"says the same each time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := target(t, name)
			one.Skip = map[string]string{}
			for _, c := range startProcesses {
				if !slices.Contains(fails, c) {
					one.Skip[c] = "it starts processes, and good plugins pass it"
				}
			}
			r, err := plugintest.Judge(t.Context(), one, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, c := range r.Cases {
				if c.Outcome == plugintest.Failed {
					failed = append(failed, c.Name)
					if c.Reason == "" {
						t.Errorf("%s failed without a reason", c.Name)
					}
				}
			}
			for _, want := range fails {
				if !slices.Contains(failed, want) {
					t.Errorf("%q did not fail; these did: %q", want, failed)
				}
			}
			if len(failed) != r.Failed {
				t.Errorf("%d failed, and the report says %d", len(failed), r.Failed)
			}
		})
	}
}

func TestReportsCanBeReadByPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	r, err := plugintest.Judge(t.Context(), target(t, "matcher"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if r.Plugin != "acme/example" || r.Version != "1.0.0" || r.Kind != plugintest.Matcher || r.Failed != 0 || r.Passed < 15 {
		t.Errorf("reported %+v", r)
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"acme/example 1.0.0", "judges its examples as it says", "0 failed"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &table)
		}
	}
}

func TestThePageOfTheKitNamesEveryCase(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/plugins/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for group, cases := range plugintest.CaseNames() {
		for _, name := range cases {
			if !strings.Contains(string(page), "| "+name+" | ") {
				t.Errorf("docs/plugins/conformance.md does not name the case %q of %s", name, group)
			}
		}
	}
}

func TestATargetMustHaveACommand(t *testing.T) {
	t.Parallel()
	if _, err := plugintest.Judge(t.Context(), plugintest.Target{}, t.TempDir()); err == nil {
		t.Error("judged nothing")
	}
}

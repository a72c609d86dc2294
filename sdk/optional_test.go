package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/sdk"
)

// plain is a sink without optional methods.
type plain struct{}

func (plain) Open(context.Context, sdk.OpenRequest) (p sdk.SinkProperties, err error) { return p, err }
func (plain) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return b.Committed(), nil
}
func (plain) Close(context.Context) error { return nil }

type (
	wrongValidate struct{ plain }
	wrongFlush    struct{ plain }
	wrongConfig   struct{ plain }
	wrongMetrics  struct{ plain }
	wrongQuery    struct{ plain }
	pointerCheck  struct{ plain }
	ownPreview    struct{ plain }
)

func (wrongValidate) Validate(context.Context) error                { return nil }
func (wrongFlush) Flush() error                                     { return nil }
func (wrongConfig) Config() *int                                    { return nil }
func (wrongMetrics) Metrics() string                                { return "" }
func (wrongQuery) CountAction(context.Context, string) (int, error) { return 0, nil }
func (*pointerCheck) Check(context.Context) error                   { return nil }
func (ownPreview) Preview() string                                  { return "" } // of notifiers

// A method that would never be called is refused before the plugin serves.
func TestOptionalMethodsOfAnotherSignatureAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		sink sdk.Sink
		says string
	}{
		{plain{}, ""},
		{ownPreview{}, ""},
		{&pointerCheck{}, ""},
		{wrongValidate{}, "sdk_test.wrongValidate has a method Validate of another signature than sdk.Validator, which would never be called: it is func(context.Context) error, want func() error"},
		{wrongFlush{}, "sdk.Flusher"},
		{wrongConfig{}, "sdk.Configured"},
		{wrongMetrics{}, "sdk.Metricser"},
		{wrongQuery{}, "CountAction of another signature than sdk.Querier"},
		{pointerCheck{}, "has the method Check of sdk.Checker only as a pointer: return a *sdk_test.pointerCheck"},
	}
	for _, tt := range tests {
		err := sdk.Check(sdk.Plugin{Name: "acme/x", Version: "1.0.0", Sink: func() sdk.Sink { return tt.sink }})
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%T: %v", tt.sink, err)
		}
	}
}

// A process that was killed while it wrote leaves a line without an end.
func TestOpenLinesRemovesATornLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for before, after := range map[string]string{
		"": "", "a\n": "a\n", "a\nb": "a\n", "torn": "", "a\n" + long: "a\n", long + "\n" + long: long + "\n", long + "\n": long + "\n",
	} {
		path := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := sdk.OpenLines(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := sdk.AppendLines(f, []byte("new\n")); err != nil {
			t.Error(err)
		}
		_ = f.Close()
		if got, _ := os.ReadFile(path); string(got) != after+"new\n" {
			t.Errorf("%d bytes became %d", len(before), len(got))
		}
	}
	f, err := sdk.OpenLines(os.DevNull)
	if err != nil || sdk.AppendLines(f, []byte("a\n")) != nil {
		t.Errorf("a device: %v", err)
	}
	_ = f.Close()
	if err := sdk.AppendLines(f, []byte("a\n")); err == nil {
		t.Error("a closed file takes lines")
	}
}

package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

func TestAnUnknownErrorNeverLosesEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		err   error
		class sdk.Class
		code  string
	}{
		{"any error", errors.New("x"), sdk.ClassTransient, "error"},
		{"deadline", fmt.Errorf("write: %w", context.DeadlineExceeded), sdk.ClassTransient, "deadline_exceeded"},
		{"file deadline", os.ErrDeadlineExceeded, sdk.ClassTransient, "deadline_exceeded"},
		{"cancelled", context.Canceled, sdk.ClassTransient, "cancelled"},
		{"network", &net.OpError{Op: "dial", Err: errors.New("refused")}, sdk.ClassTransient, "network"},
		{"wrapped class", fmt.Errorf("row 3: %w", sdk.Permanent(errors.New("x"))), sdk.ClassPermanent, "permanent"},
		{"class changed, code kept", sdk.Permanent(sdk.Errorf(sdk.ClassTransient, "duplicate_key", "x")), sdk.ClassPermanent, "duplicate_key"},
	}
	for _, tt := range tests {
		if e := sdk.AsError(tt.err); e.Class != tt.class || e.Code != tt.code {
			t.Errorf("%s: %s %s", tt.name, e.Class, e.Code)
		}
	}
	if sdk.AsError(nil) != nil || sdk.Transient(nil) != nil || sdk.Throttled(nil, time.Second) != nil || sdk.ConfigError("/x", nil) != nil {
		t.Error("nil became an error")
	}
	if err := sdk.Transient(os.ErrNotExist); !errors.Is(err, os.ErrNotExist) {
		t.Error("the cause is lost")
	}
}

func TestAnHTTPAnswerHasAClass(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		retry  string
		class  sdk.Class
		after  time.Duration
	}{
		{200, "", 0, 0},
		{204, "", 0, 0},
		{301, "", sdk.ClassPermanent, 0},
		{400, "", sdk.ClassPermanent, 0},
		{401, "", sdk.ClassConfig, 0},
		{404, "", sdk.ClassConfig, 0},
		{408, "", sdk.ClassTransient, 0},
		{413, "", sdk.ClassPermanent, 0},
		{429, "30", sdk.ClassThrottled, 30 * time.Second},
		{429, "-5", sdk.ClassThrottled, 0},
		{429, "soon", sdk.ClassThrottled, 0},
		{500, "", sdk.ClassTransient, 0},
		{503, "", sdk.ClassTransient, 0},
		{503, "7", sdk.ClassThrottled, 7 * time.Second},
		{503, "Mon, 02 Jan 2006 15:04:05 GMT", sdk.ClassTransient, 0},
	}
	for _, tt := range tests {
		resp := &http.Response{
			StatusCode: tt.status, Status: fmt.Sprint(tt.status, " ", http.StatusText(tt.status)),
			Header: http.Header{"Retry-After": {tt.retry}}, Body: io.NopCloser(strings.NewReader("try\nlater")),
		}
		err := sdk.FromHTTP(resp)
		if tt.class == 0 {
			if err != nil {
				t.Errorf("%d: %v", tt.status, err)
			}
			continue
		}
		e := sdk.AsError(err)
		if e.Class != tt.class || e.RetryAfter != tt.after || !strings.HasSuffix(e.Message, ": try") || e.Code != fmt.Sprintf("http_%d", tt.status) {
			t.Errorf("%d: %s %s %s", tt.status, e.Class, e.RetryAfter, e)
		}
	}
}

func TestABatchInTheFormsASinkNeeds(t *testing.T) {
	t.Parallel()
	b := &sdk.Batch{FirstSeq: 5, LastSeq: 6}
	for _, name := range []string{"one", "two"} {
		e := sdk.Event{UUID: "u", ProjectID: 1, Name: name, DistinctID: "d", Properties: []byte(`{"n":9007199254740993}`)}
		b.Records = append(b.Records, sdk.Record{JSON: e.AppendJSON(nil)})
	}
	lines := string(b.NDJSON())
	if strings.Count(lines, "\n") != 2 || !strings.HasSuffix(lines, "}\n") || b.Size() != len(lines)-2 {
		t.Errorf("lines %q", lines)
	}
	events, err := b.Events()
	if err != nil || events[1].Name != "two" || string(events[0].Properties) != `{"n":9007199254740993}` {
		t.Errorf("%+v %v", events, err)
	}
	b.Records[1].JSON = []byte("{")
	if _, err := b.Events(); err == nil || !strings.Contains(err.Error(), "record 1") {
		t.Errorf("error %v", err)
	}
	if r := b.Partial(); r.Outcome != sdk.Committed || r.CommittedThrough != 6 {
		t.Errorf("%+v", r)
	}
	if (sdk.WriteResult{}).Outcome == sdk.Committed {
		t.Error("the zero value is a success")
	}
}

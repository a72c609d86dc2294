// Command hanging is a sink that misbehaves as its config selects: it never returns from
// one of its calls, ends at an event, or prints a part of its secret. It ignores SIGTERM.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/sdk"
)

type sink struct {
	cfg struct {
		In     string `json:"in" doc:"Call that hangs: open, write or close."`
		Secret string `json:"secret" secret:"true" doc:"URL whose password Open and Write print in many forms."`
		ExitOn string `json:"exit_on" doc:"Event at which the process ends."`
	}
}

func (s *sink) Config() any { return &s.cfg }

func (s *sink) hang(call string) {
	if s.cfg.In == call {
		select {}
	}
}

// leak prints the password of the URL and returns it in an error.
func (s *sink) leak(ctx context.Context) error {
	u, err := url.Parse(s.cfg.Secret)
	if err != nil || u.User == nil {
		return nil
	}
	password, _ := u.User.Password()
	basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
	sdk.Log(ctx).Error("connect "+password, "url", u.String(), "header", "Basic "+basic)
	fmt.Fprintln(os.Stderr, "raw", password, url.QueryEscape(password), basic)
	return sdk.Permanent(fmt.Errorf("refused %s, %s, %s", password, u.User, basic))
}

func (s *sink) Open(ctx context.Context, _ sdk.OpenRequest) (sdk.SinkProperties, error) {
	s.hang("open")
	_ = s.leak(ctx)
	return sdk.SinkProperties{}, nil
}

func (s *sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s.hang("write")
	for _, r := range b.Records {
		if s.cfg.ExitOn != "" && bytes.Contains(r.JSON, []byte(`"`+s.cfg.ExitOn+`"`)) {
			os.Exit(3)
		}
	}
	if err := s.leak(ctx); err != nil {
		return sdk.WriteResult{}, err
	}
	return b.Committed(), nil
}

func (s *sink) Flush(_ context.Context, req sdk.FlushRequest) (sdk.FlushResult, error) {
	return sdk.FlushResult{CommittedThrough: req.UpTo}, nil
}

func (s *sink) Close(context.Context) error {
	s.hang("close")
	return nil
}

func main() {
	signal.Ignore(syscall.SIGTERM)
	sdk.Serve(sdk.Plugin{Name: "test/hanging", Version: "1.0.0", Sink: func() sdk.Sink { return &sink{} }})
}

package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/guidonhq/guidon/plugins/sink/webhook"
	"github.com/guidonhq/guidon/sdk"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endpoint is a server that keeps the requests and returns configured answers.
type endpoint struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
}

func listen(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.got, e.body = append(e.got, r), append(e.body, body)
		e.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func opened(t *testing.T, url, settings string) *webhook.Sink {
	t.Helper()
	s := webhook.New()
	if err := sdk.DecodeConfig([]byte(`{"url": "`+url+`"`+settings+`}`), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), sdk.OpenRequest{Instance: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// local lets a test reach a server on this machine.
const local = `, "allow_networks": ["127.0.0.0/8"]`

func events(n int) *sdk.Batch {
	b := &sdk.Batch{ID: "0190-batch", FirstSeq: 1, LastSeq: uint64(n)}
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for i := range n {
		id := uuid.New()
		ev := sdk.Event{
			UUID: id.String(), ProjectID: 1, Name: "paid", DistinctID: fmt.Sprint("user ", i), Timestamp: at, ReceivedAt: at,
			Properties: []byte(`{"n":9007199254740993}`),
		}
		b.Records = append(b.Records, sdk.Record{UUID: id, JSON: ev.AppendJSON(nil), ReceivedAt: at, ProjectID: 1})
	}
	return b
}

func TestABatchIsPostedSignedAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("gzip ", packed), func(t *testing.T) {
			t.Parallel()
			e := listen(t, nil)
			s := opened(t, e.URL, local+`, "secret": "`+secret+`", "headers": {"authorization": "Bearer x"}, "gzip": `+fmt.Sprint(packed))
			b := events(3)
			for range 2 {
				if r, err := s.Write(t.Context(), b); err != nil || r.Outcome != sdk.Committed {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if len(e.got) != 2 || !bytes.Equal(e.body[0], e.body[1]) {
				t.Fatal("the batch was not posted twice, the same")
			}
			signer, err := webhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := signer.Verify(e.body[0], e.got[0].Header); err != nil {
				t.Errorf("the signature: %v", err)
			}
			for name, want := range map[string]string{
				"Idempotency-Key": b.ID, "Webhook-Id": b.ID, "Content-Type": "application/json", "Authorization": "Bearer x",
			} {
				if got := e.got[0].Header.Get(name); got != want {
					t.Errorf("%s is %q", name, got)
				}
			}
			body := e.body[0]
			if packed {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
				if err := signer.Verify(body, e.got[0].Header); err != nil {
					t.Errorf("the signature of the decompressed body: %v", err)
				}
			}
			var sent struct {
				Type string
				Data []sdk.Event
			}
			if err := json.Unmarshal(body, &sent); err != nil || sent.Type != "events" || len(sent.Data) != 3 || sent.Data[2].DistinctID != "user 2" {
				t.Errorf("%v: %s", err, body)
			}
		})
	}
}

func TestLinesOfJSON(t *testing.T) {
	t.Parallel()
	e := listen(t, nil)
	b := events(2)
	if _, err := opened(t, e.URL, local+`, "format": "ndjson"`).Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(e.body[0], b.NDJSON()) || e.got[0].Header.Get("Content-Type") != "application/x-ndjson" || e.got[0].Header.Get("Webhook-Signature") != "" {
		t.Errorf("%v %s", e.got[0].Header, e.body[0])
	}
}

func TestAnswersSayWhatToDo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		header [2]string
		class  sdk.Class
		after  time.Duration
	}{
		"accepted":            {202, [2]string{}, sdk.ClassUnspecified, 0},
		"bad":                 {400, [2]string{}, sdk.ClassPermanent, 0},
		"too large":           {413, [2]string{}, sdk.ClassPermanent, 0},
		"who are you?":        {401, [2]string{}, sdk.ClassConfig, 0},
		"not here":            {404, [2]string{}, sdk.ClassConfig, 0},
		"not by post":         {405, [2]string{}, sdk.ClassConfig, 0},
		"no more":             {410, [2]string{}, sdk.ClassConfig, 0},
		"elsewhere":           {302, [2]string{"Location", "http://169.254.169.254/"}, sdk.ClassConfig, 0},
		"too fast":            {429, [2]string{"Retry-After", "7"}, sdk.ClassThrottled, 7 * time.Second},
		"broken":              {500, [2]string{}, sdk.ClassTransient, 0},
		"closed for the hour": {503, [2]string{"Retry-After", "3600"}, sdk.ClassThrottled, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := listen(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.header[0] != "" {
					w.Header().Set(tt.header[0], tt.header[1])
				}
				w.WriteHeader(tt.status)
			})
			_, err := opened(t, e.URL, local).Write(t.Context(), events(1))
			got, ok := errors.AsType[*sdk.Error](err)
			switch {
			case tt.class == sdk.ClassUnspecified && err != nil, tt.class != sdk.ClassUnspecified && !ok:
				t.Fatalf("got %v", err)
			case ok && (got.Class != tt.class || got.RetryAfter != tt.after):
				t.Errorf("got %#v", got)
			case len(e.got) != 1:
				t.Errorf("%d requests", len(e.got))
			}
		})
	}
}

func TestAnEndpointThatHangsOrHangsUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hang := listen(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	cut := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 O")
			_ = c.Close()
		}
	})
	for name, url := range map[string]string{"hangs": hang.URL, "hangs up": cut.URL, "nobody": "http://127.0.0.1:1"} {
		_, err := opened(t, url+"/secret-path", local+`, "timeout": "200ms"`).Write(t.Context(), events(1))
		e, ok := errors.AsType[*sdk.Error](err)
		if !ok || e.Class != sdk.ClassTransient {
			t.Errorf("%s: %#v", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret-path") {
			t.Errorf("%s: the error tells the path: %v", name, err)
		}
	}
}

func TestAPrivateAddressIsReachedOnlyWhenAllowed(t *testing.T) {
	t.Parallel()
	e := listen(t, nil)
	_, err := opened(t, e.URL, "").Write(t.Context(), events(1))
	got, ok := errors.AsType[*sdk.Error](err)
	if !ok || got.Class != sdk.ClassConfig || got.Code != "address_refused" || len(e.got) != 0 {
		t.Errorf("got %#v after %d requests", err, len(e.got))
	}
	if _, err := opened(t, e.URL, `, "allow_hosts": ["127.0.0.1"]`).Write(t.Context(), events(1)); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for pointer, config := range map[string]string{
		"/url":     `{"url": "ftp://x"}`,
		"/secret":  `{"url": "http://x", "secret": "whsec_***"}`,
		"/headers": `{"url": "http://x", "headers": {"webhook-ID": "1"}}`,
	} {
		s := webhook.New()
		if err := sdk.DecodeConfig([]byte(config), s.Config()); err != nil {
			t.Fatal(err)
		}
		if e, ok := errors.AsType[*sdk.Error](s.Validate()); !ok || e.Pointer != pointer {
			t.Errorf("%s: %v", config, s.Validate())
		}
	}
}

package oidc_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/signin/oidc"
)

// A provider that does not answer holds up no request: they share one question, leave it when
// they end, and fail at once after it has failed.
func TestProviderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-release
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer s.Close()
	p := oidc.New(oidc.Config{Issuer: s.URL, ClientID: "guidon"})
	start := func(ctx context.Context) {
		if _, err := p.Start(ctx, "http://localhost/", "secret"); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("got %v, want Unauthenticated", err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	all.Go(func() { start(t.Context()) })
	for range 5 {
		start(ended) // returns before the provider answers
	}
	close(release)
	all.Wait()
	start(t.Context())
	if n := asked.Load(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

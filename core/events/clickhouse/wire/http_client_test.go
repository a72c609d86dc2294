package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// TestSilentServer inserts into a server that does not answer, as one does behind a link that
// was cut: the insertion ends, as an outage.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ends }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(ends) })
	c, err := New("clickhouse://" + strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if c.insertion > time.Minute {
		t.Errorf("an insertion may hold the outbox for %s", c.insertion)
	}
	c.insertion = 50 * time.Millisecond
	err = c.Exec(t.Context(), "INSERT INTO t FORMAT RowBinary", []byte("x"), nil)
	if !errors.Is(err, context.DeadlineExceeded) || fault.CodeOf(err) != "events_unavailable" {
		t.Errorf("got %v, want an outage", err)
	}
}

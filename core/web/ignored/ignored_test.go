package ignored_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web/ignored"
)

// TestValue checks that the header is one line of bounded length for
// all names.
func TestValue(t *testing.T) {
	t.Parallel()
	if got := ignored.Value([]string{"a", "b,\r\nX-Evil: 1", "a", ""}); got != "a, b%2C%0D%0AX-Evil:%201, %" {
		t.Errorf("value %q", got)
	}
	long := make([]string, 500)
	for i := range long {
		long[i] = strings.Repeat("n", i+1)
	}
	if got := ignored.Value(long); len(got) > 1010 || !strings.HasSuffix(got, ", ...") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := ignored.Value(nil); got != "" {
		t.Errorf("no names: %q", got)
	}
}

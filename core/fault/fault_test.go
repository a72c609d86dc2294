package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

func TestErrorsKeepTheirKindThroughWrapping(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	base := fault.Fieldf("key", "unique", "taken by flag %d", 7)
	cases := []struct {
		name string
		err  error
		kind fault.Kind
		text string
	}{
		{"an error without a kind is internal", cause, fault.Internal, "disk on fire"},
		{"a field is named", base, fault.Invalid, "unique (key): taken by flag 7"},
		{"wrapping keeps the kind", fmt.Errorf("save: %w", base), fault.Invalid, "save: unique (key): taken by flag 7"},
		{"a cause is in the text for the log", fault.New(fault.Unavailable, "full", "No space.").Because(cause), fault.Unavailable, "full: No space.: disk on fire"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := fault.KindOf(c.err); got != c.kind || !fault.Is(c.err, c.kind) {
				t.Errorf("kind %d, want %d", got, c.kind)
			}
			if got := c.err.Error(); got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
		})
	}
	if fault.Is(nil, fault.Internal) || fault.From(cause) != nil {
		t.Error("nil has no kind, and an error of others is no fault")
	}
}

func TestCopiesLeaveTheOriginalAlone(t *testing.T) {
	t.Parallel()
	base := fault.Newf(fault.Throttled, "slow_down", "%d a second", 5)
	changed := base.At("rate").After(time.Second).Because(errors.ErrUnsupported)
	if base.Attr != "" || base.RetryAfter != 0 || errors.Is(base, errors.ErrUnsupported) {
		t.Errorf("the original changed: %+v", base)
	}
	if changed.Attr != "rate" || changed.RetryAfter != time.Second || !errors.Is(changed, errors.ErrUnsupported) {
		t.Errorf("got %+v", changed)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"error": errors.New("plain"), "row_missing": fmt.Errorf("read: %w", fault.New(fault.NotFound, "row_missing", "No row.")),
	} {
		if got := fault.CodeOf(err); got != want {
			t.Errorf("%v: code %q, want %q", err, got, want)
		}
	}
	if got := fault.CodeOf(fault.New(fault.Internal, "", "")); got != "error" {
		t.Errorf("no code: %q", got)
	}
}

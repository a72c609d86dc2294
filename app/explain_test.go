package app_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/fault"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	missing := fault.New(fault.NotFound, "not_found", "Not found.").Because(errors.New("read project"))
	for want, err := range map[string]error{
		"project_id: There is no such project.":    fault.Field("project_id", "does_not_exist", "There is no such project.").Because(missing),
		"read project: Not found.":                 missing,
		"close: read project: Not found.":          fmt.Errorf("close: %w", missing),
		"A key has this value.":                    fault.New(fault.Conflict, "taken", "A key has this value.").Because(errors.New("UNIQUE")),
		"disk full":                                errors.New("disk full"),
		"server_error: A server error.: bad block": fault.New(fault.Internal, "server_error", "A server error.").Because(errors.New("bad block")),
	} {
		if got := app.Explain(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

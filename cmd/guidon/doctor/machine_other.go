//go:build !linux

package doctor

import (
	"context"

	"github.com/guidonhq/guidon/app"
)

// The checks of the kernel are those of Linux.
func checkClock(context.Context, app.Config) []Result  { return unchecked }
func checkSpace(context.Context, app.Config) []Result  { return unchecked }
func checkMemory(context.Context, app.Config) []Result { return unchecked }

var unchecked = []Result{{State: OK, Found: "not checked on this system"}}

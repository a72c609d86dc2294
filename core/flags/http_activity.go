package flags

import (
	"context"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/web"
)

func (h flagsHTTP) projectActivity(c *web.Call) error { return h.activityOf(c, 0) }

func (h flagsHTTP) activity(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	return h.activityOf(c, id)
}

func (h flagsHTTP) activityOf(c *web.Call, id int64) error {
	return activity.Answer(c, func(ctx context.Context, limit, offset int) ([]activity.Entry, int, error) {
		return h.service.Activity(ctx, c.Project, id, limit, offset)
	})
}

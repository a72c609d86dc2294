package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/app"
)

type eventsVerb struct {
	Tail eventsTailVerb `cmd:"" help:"Print the newest events, and follow."`
}

type eventsTailVerb struct {
	Project int64  `default:"1" help:"Id of the project."`
	Event   string `help:"Only events of this name."`
	Lines   int    `short:"n" default:"10" help:"How many stored events to begin with."`
	Follow  bool   `short:"f" help:"Keep printing events as they are stored."`
}

func (v eventsTailVerb) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.TailEvents(ctx, cfg, app.Tail{Project: v.Project, Event: v.Event, Lines: v.Lines, Follow: v.Follow}, e.out)
}

package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/guidonhq/guidon/app"
)

type eventsCmd struct {
	Tail eventsTailCmd `cmd:"" help:"Print the newest events; -f follows."`
}

type eventsTailCmd struct {
	Project int64  `default:"1" help:"Id of the project."`
	Event   string `help:"Only events of this name."`
	Lines   int    `short:"n" default:"10" help:"Number of stored events to print first."`
	Follow  bool   `short:"f" help:"Keep printing events as they are stored."`
}

func (c eventsTailCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.TailEvents(ctx, cfg, app.Tail{Project: c.Project, Event: c.Event, Lines: c.Lines, Follow: c.Follow}, e.out)
}

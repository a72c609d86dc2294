package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/clusterstatus"
)

type clusterCmd struct {
	Status clusterStatusCmd `cmd:"" help:"Show the servers that share the database, and what each of them does."`
}

type clusterStatusCmd struct {
	serverFlags `embed:""`
	Output      string `short:"o" enum:"table,json" default:"table" help:"table or json."`
}

func (c clusterStatusCmd) Run(e *env) error {
	var raw json.RawMessage
	if err := c.call(e, http.MethodGet, "/api/cluster", &raw); err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(raw)
	}
	return clusterstatus.Print(e.out, raw, time.Now())
}

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// instance is a plugin instance as GET /api/plugins shows it.
type instance struct {
	Name, Kind, Use, Plugin, Version, State string

	Since     time.Time
	Restarts  int
	Reason    string
	LastError string `json:"last_error"`

	Diagnostics []struct{ Pointer, Summary string }
	Delivery    *struct {
		State       string
		LagRecords  int64 `json:"lag_records"`
		DeadLetters int64 `json:"dead_letters"`
	}
}

func pluginPath(name, what string) string {
	path := "/api/plugins/"
	if name != "" {
		path += url.PathEscape(name) + "/"
	}
	return path + what
}

type pluginStatusVerb struct {
	remote `embed:""`
	Name   string `arg:"" optional:"" help:"Name of the instance; without it, all in a table."`
}

func (v pluginStatusVerb) Run(e *env) error {
	if v.Name != "" {
		var one any
		if err := v.ask(e, http.MethodGet, pluginPath(v.Name, ""), &one); err != nil {
			return err
		}
		return e.indented(one)
	}
	var page struct{ Results []instance }
	if err := v.ask(e, http.MethodGet, pluginPath("", ""), &page); err != nil {
		return err
	}
	rows := make([][]any, len(page.Results))
	for i, p := range page.Results {
		lag, letters := "-", "-"
		if d := p.Delivery; d != nil {
			lag, letters = strconv.FormatInt(d.LagRecords, 10), strconv.FormatInt(d.DeadLetters, 10)
		}
		rows[i] = []any{p.Name, p.Kind, p.Use, p.State, time.Since(p.Since).Round(time.Second), p.Restarts, lag, letters, oneLine(p.trouble(), 80)}
	}
	return e.table("NAME KIND USE STATE FOR RESTARTS BEHIND DEAD_LETTERS TROUBLE", rows)
}

// trouble is what is wrong with it, in a few words.
func (p *instance) trouble() string {
	switch {
	case len(p.Diagnostics) > 0:
		return p.Diagnostics[0].Pointer + " " + p.Diagnostics[0].Summary
	case p.State != "ready" && p.LastError != "":
		return p.LastError
	case p.State != "ready":
		return p.Reason
	case p.Delivery != nil && p.Delivery.State == "paused":
		return "delivery is paused"
	}
	return ""
}

type pluginLogsVerb struct {
	remote `embed:""`
	Name   string `arg:"" help:"Name of the instance."`
	Lines  int    `short:"n" default:"100" help:"How many lines, at most 500."`
}

func (v pluginLogsVerb) Run(e *env) error {
	var page struct {
		Results []struct {
			At      time.Time
			Level   string
			Message string
		}
	}
	if err := v.ask(e, http.MethodGet, pluginPath(v.Name, "logs?lines="+strconv.Itoa(v.Lines)), &page); err != nil {
		return err
	}
	for _, l := range page.Results {
		if _, err := fmt.Fprintln(e.out, l.At.Local().Format(time.DateTime), l.Level, oneLine(l.Message, 2000)); err != nil {
			return err
		}
	}
	return nil
}

type pluginCheckVerb struct {
	remote `embed:""`
	Name   string `arg:"" help:"Name of the instance."`
}

// Run has the plugin look whether what it depends on is there. It fails when
// that is not so, or nobody can tell.
func (v pluginCheckVerb) Run(e *env) error {
	var result struct {
		OK          bool `json:"ok"`
		Error, Code string
		LatencyMS   float64 `json:"latency_ms"`
	}
	if err := v.ask(e, http.MethodPost, pluginPath(v.Name, "check"), &result); err != nil {
		return err
	}
	if !result.OK {
		return fmt.Errorf("%s: %s (%s)", v.Name, oneLine(result.Error, 500), result.Code)
	}
	_, err := fmt.Fprintf(e.out, "%s works, checked in %.0f ms\n", v.Name, result.LatencyMS)
	return err
}

// pluginDoVerb asks the server to do something with an instance.
type pluginDoVerb struct {
	remote `embed:""`
	Name   string `arg:"" help:"Name of the instance."`
}

func (v pluginDoVerb) do(e *env, what string) error {
	var after struct{ State string }
	if err := v.ask(e, http.MethodPost, pluginPath(v.Name, what), &after); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.out, v.Name, after.State)
	return err
}

type (
	pluginRestartVerb struct{ pluginDoVerb }
	pluginReleaseVerb struct{ pluginDoVerb }
	pluginPauseVerb   struct{ pluginDoVerb }
	pluginResumeVerb  struct{ pluginDoVerb }
)

func (v pluginRestartVerb) Run(e *env) error { return v.do(e, "restart") }
func (v pluginReleaseVerb) Run(e *env) error { return v.do(e, "release") }
func (v pluginPauseVerb) Run(e *env) error   { return v.do(e, "pause") }
func (v pluginResumeVerb) Run(e *env) error  { return v.do(e, "resume") }

type pluginReloadVerb struct {
	remote `embed:""`
}

func (v pluginReloadVerb) Run(e *env) error {
	var done any
	if err := v.ask(e, http.MethodPost, pluginPath("", "reload"), &done); err != nil {
		return err
	}
	return e.indented(done)
}

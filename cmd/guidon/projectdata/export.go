package projectdata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Export writes a project of a running server to a directory.
type Export struct {
	command.Remote `embed:""`

	To    string   `required:"" help:"Directory for the files; an export that was interrupted goes on in it." placeholder:"DIR"`
	Only  []string `enum:"definitions,persons,events" default:"definitions,persons,events" help:"What to export."`
	Since string   `help:"Only events with a timestamp since this time." placeholder:"TIME"`
	Until string   `help:"Only events with a timestamp before this time." placeholder:"TIME"`
	Event string   `help:"Only events with this name." placeholder:"NAME"`
}

// Help is printed below the options.
func (Export) Help() string {
	return "Definitions are one YAML file with names instead of ids, which guidon serve --seed reads, too. Events and persons are gzipped JSON lines with checksums in manifest.json; a line of an event is an item of /batch/. Keys, secrets and encrypted payloads are never exported. guidon import reads the directory."
}

// A part ends after the page that reaches one of these bounds.
const (
	partLines = 100_000
	partBytes = 128 << 20 // before compression
)

// Run exports the parts that the directory lacks.
func (c Export) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(c.To, 0o700); err != nil {
		return err
	}
	m, err := c.begin(client)
	if err != nil {
		return err
	}
	if slices.Contains(c.Only, "definitions") {
		if err := c.exportDefinitions(ctx, e, client); err != nil {
			return err
		}
	}
	x := exporter{client, e, c.To, m}
	for _, kind := range []string{kindPersons, kindEvents} {
		if !slices.Contains(c.Only, kind) {
			continue
		}
		if err := x.export(ctx, kind); err != nil {
			if ctx.Err() != nil {
				err = errors.New("interrupted; the same command goes on")
			}
			return err
		}
		fmt.Fprintf(e.Out, "%s: %d in %s\n", kind, m.Progress[kind].Lines, c.To)
	}
	return nil
}

// begin returns the manifest of an export that goes on, or a new one.
func (c Export) begin(client *remote.Client) (*manifest, error) {
	m, err := readManifest(c.To)
	if err != nil {
		return nil, err
	}
	project := client.Project("")
	if m == nil {
		m = &manifest{
			Format: archiveFormat, ID: uuid.NewString(), Server: client.Place(), Project: project, StartedAt: time.Now().UTC().Truncate(time.Second),
			Progress: map[string]*progress{}, Parts: []part{},
		}
	}
	here := m.Server == client.Place() && m.Project == project
	if here && !m.hasEvents() { // the options are those of events
		m.Since, m.Until, m.Event, m.Through = c.Since, c.Until, c.Event, ""
		return m, m.write(c.To)
	}
	if !here || m.Since != c.Since || m.Until != c.Until || m.Event != c.Event {
		return nil, fmt.Errorf("%s has an export of %s%s with other options; name another directory", c.To, m.Server, m.Project)
	}
	return m, nil
}

func (c Export) exportDefinitions(ctx context.Context, e *command.Env, client *remote.Client) error {
	p := e.StartProgress("reading definitions")
	d, err := readDefinitions(ctx, client)
	p.Stop()
	if err != nil {
		return err
	}
	for _, w := range d.warnings {
		fmt.Fprintln(e.ErrOut, "guidon: warning:", w)
	}
	var text bytes.Buffer
	if err := output.Value(&text, output.YAML, d.document()); err != nil {
		return err
	}
	path := filepath.Join(c.To, definitionsName)
	if err := os.WriteFile(path+partialSuffix, text.Bytes(), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+partialSuffix, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "definitions: %s in %s\n", d.summary(), path)
	return err
}

type exporter struct {
	client   *remote.Client
	env      *command.Env
	dir      string
	manifest *manifest
}

// export writes the parts of a kind that are missing.
func (x *exporter) export(ctx context.Context, kind string) error {
	at := x.manifest.Progress[kind]
	if at == nil {
		at = &progress{}
		x.manifest.Progress[kind] = at
	}
	for !at.Done {
		p := x.env.StartProgress(fmt.Sprintf("%s after %d", kind, at.Lines))
		err := x.exportPart(ctx, kind, at)
		p.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) exportPart(ctx context.Context, kind string, at *progress) error {
	number := 1
	for i := range x.manifest.Parts {
		if x.manifest.Parts[i].Kind == kind {
			number++
		}
	}
	w, err := createPart(x.dir, fmt.Sprintf("%s-%06d.jsonl.gz", kind, number))
	if err != nil {
		return err
	}
	next := *at
	for !next.Done && w.lines < partLines && w.raw < partBytes {
		if err := x.addPage(ctx, w, kind, &next); err != nil {
			w.discard()
			return err
		}
	}
	if w.lines == 0 {
		w.discard()
	} else {
		p, err := w.finish(kind)
		if err != nil {
			return err
		}
		x.manifest.Parts = append(x.manifest.Parts, p)
	}
	*at = next
	return x.manifest.write(x.dir)
}

func (x *exporter) addPage(ctx context.Context, w *partWriter, kind string, at *progress) error {
	q := url.Values{"limit": {strconv.Itoa(10_000)}}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("cursor", at.Cursor)
	if kind == kindEvents {
		set("since", x.manifest.Since)
		set("until", x.manifest.Until)
		set("event", x.manifest.Event)
		set("through", x.manifest.Through)
	}
	lines, header, err := x.client.Lines(ctx, x.client.Project("export/"+kind+"/?"+q.Encode()))
	if err != nil {
		return err
	}
	if _, err := w.gzip.Write(lines); err != nil {
		return err
	}
	n := bytes.Count(lines, []byte{'\n'})
	w.lines, w.raw, at.Lines = w.lines+n, w.raw+len(lines), at.Lines+int64(n)
	if through := header.Get("Guidon-Export-Through"); through != "" && kind == kindEvents {
		x.manifest.Through = strings.TrimSpace(through)
	}
	at.Cursor = header.Get("Guidon-Next-Cursor")
	at.Done = at.Cursor == ""
	return nil
}

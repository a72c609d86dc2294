package projectdata

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/definitionfile"
)

// readFile reads the file of an export, or another one with definitions, and returns it
// with the project of that name, or its only one.
func readFile(path, name string) (*definitionfile.File, *definitionfile.Project, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := definitionfile.Parse(path, text)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for i := range f.Projects {
		if p := &f.Projects[i]; p.Name == name || name == "" && len(f.Projects) == 1 {
			return f, p, nil
		}
		names = append(names, f.Projects[i].Name)
	}
	if name != "" {
		return nil, nil, fmt.Errorf("%s has no project %q; it has %q", path, name, names)
	}
	return nil, nil, fmt.Errorf("%s has %d projects: name one of %q with --from-project", path, len(names), names)
}

// The ways to treat a definition that exists and differs.
const (
	onConflictFail   = "fail"
	onConflictSkip   = "skip"
	onConflictUpdate = "update"
)

// importer brings definitions into a project.
type importer struct {
	env        *command.Env
	client     *remote.Client
	onConflict string
	dryRun     bool
	target     *definitions
	created    int
	changed    int
	left       int
	failures   []error
}

// run imports a project of a file. It goes on after a definition that fails.
func (x *importer) run(ctx context.Context, f *definitionfile.File, p *definitionfile.Project) error {
	var err error
	if x.target, err = readDefinitions(ctx, x.client); err != nil {
		return err
	}
	if err := x.importProject(ctx, p); err != nil {
		return err
	}
	if err := x.importGroupTypes(ctx, p.GroupTypes); err != nil {
		return err
	}
	x.importRoles(ctx, f.Roles)
	for i := range kinds {
		k := &kinds[i]
		failed := definitionfile.InOrder(p.Definitions[k.Section], func(it definitionfile.Item) error { return x.importOne(ctx, k, it) })
		for _, one := range failed {
			x.failures = append(x.failures, fmt.Errorf("%s %s (line %d): %w", k.One, one.Item.Name, one.Item.Line, one.Err))
		}
	}
	x.importScheduled(ctx, p.Scheduled)
	verb := "definitions: %d created, %d changed, %d left\n"
	if x.dryRun {
		verb = "would create %d, change %d, leave %d\n"
	}
	fmt.Fprintf(x.env.Out, verb, x.created, x.changed, x.left)
	return errors.Join(x.failures...)
}

// importGroupTypes creates the group types that the project lacks.
func (x *importer) importGroupTypes(ctx context.Context, types []definitionfile.Item) error {
	for _, t := range types {
		if x.target.typeIndex[t.Name] != nil {
			continue
		}
		fmt.Fprintf(x.env.Out, "create group type %s\n", t.Name)
		made := object{"group_type_index": json.Number("0")}
		if !x.dryRun {
			if err := x.client.Do(ctx, http.MethodPost, x.client.Project("groups_types/"), t.Body, &made); err != nil {
				return fmt.Errorf("group type %s: %w", t.Name, err)
			}
		}
		x.target.typeIndex[t.Name] = made["group_type_index"]
	}
	return nil
}

func (x *importer) importProject(ctx context.Context, p *definitionfile.Project) error {
	for _, part := range []struct {
		section, path string
		body          json.RawMessage
		now           object
	}{{"project", "", p.Settings, pick(x.target.project, "timezone", "anonymize_ips")}, {"retention", "retention/", p.Retention, x.target.retention}} {
		var want object
		if len(part.body) > 0 {
			if err := output.Decode(part.body, &want); err != nil {
				return err
			}
		}
		if len(want) == 0 || !x.differs(want, part.now) {
			continue
		}
		if x.onConflict != onConflictUpdate {
			fmt.Fprintf(x.env.Out, "leave  settings of the %s, which differ (--on-conflict update changes them)\n", part.section)
			x.left++
			continue
		}
		fmt.Fprintf(x.env.Out, "change settings of the %s\n", part.section)
		x.changed++
		if x.dryRun {
			continue
		}
		if err := x.client.Do(ctx, http.MethodPatch, x.client.Project(part.path), want, nil); err != nil {
			return fmt.Errorf("%s: %w", part.section, err)
		}
	}
	return nil
}

// differs reports whether a field of want is another one now.
func (x *importer) differs(want, now object) bool {
	for name := range want {
		if !equal(want[name], now[name]) {
			return true
		}
	}
	return false
}

func (x *importer) importOne(ctx context.Context, k *definitionfile.Kind, it definitionfile.Item) error {
	label := it.Name
	var o object
	if err := output.Decode(it.Body, &o); err != nil {
		return err
	}
	there := x.target.kinds[k.Section]
	now := there.objects[label]
	var changed []string
	for _, field := range slices.Sorted(maps.Keys(o)) {
		if now != nil && !equal(o[field], now[field]) {
			changed = append(changed, field)
		}
	}
	switch {
	case now != nil && len(changed) == 0:
		x.left++
		return x.giveRoles(ctx, it, now)
	case now != nil && x.onConflict == onConflictFail:
		return fmt.Errorf("exists and differs in %v (--on-conflict skip or update)", changed)
	case now != nil && x.onConflict == onConflictSkip:
		fmt.Fprintf(x.env.Out, "leave  %s %s, which differs in %v\n", k.One, label, changed)
		x.left++
		return nil
	}
	resolved, err := definitionfile.Resolve(it.Body, x.target.id)
	if err != nil {
		return err
	}
	var body object
	if err := output.Decode(resolved, &body); err != nil {
		return err
	}
	if now != nil {
		body = pick(body, changed...)
		fmt.Fprintf(x.env.Out, "change %s %s: %v\n", k.One, label, changed)
	} else {
		fmt.Fprintf(x.env.Out, "create %s %s\n", k.One, label)
	}
	if err := x.write(ctx, k, label, body, now != nil); err != nil {
		return err
	}
	return x.giveRoles(ctx, it, now)
}

func (x *importer) write(ctx context.Context, k *definitionfile.Kind, label string, body object, exists bool) error {
	there := x.target.kinds[k.Section]
	if exists {
		x.changed++
	} else {
		x.created++
	}
	if x.dryRun {
		if !exists {
			there.ids[label] = json.Number("0")
		}
		return nil
	}
	method, path := http.MethodPost, x.client.Project(k.Path)
	if exists {
		method, path = http.MethodPatch, x.client.Project(fmt.Sprintf("%s%v/", k.Path, there.ids[label]))
	}
	var answer json.RawMessage
	if err := x.client.Do(ctx, method, path, body, &answer); err != nil {
		return err
	}
	var got object
	if err := output.Decode(answer, &got); err != nil {
		return err
	}
	there.ids[label] = got["id"]
	return nil
}

// equal compares decoded JSON.
func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

package projectdata

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/definitionfile"
)

const rolesPath = "/api/organizations/@current/roles/"

// readRoles reads the roles of the organization, and adds them to the flags that they may
// edit. A key without role:read leaves them out.
func (d *definitions) readRoles(ctx context.Context, client *remote.Client) error {
	list, err := client.All(ctx, rolesPath, nil, 0)
	if command.IsStatus(err, http.StatusForbidden) || command.IsStatus(err, http.StatusNotFound) {
		d.warnings = append(d.warnings, "roles are left out: the key may not read them")
		return nil
	}
	if err != nil {
		return fmt.Errorf("roles: %w", err)
	}
	for _, text := range list {
		var role object
		if err := output.Decode(text, &role); err != nil {
			return err
		}
		name := fmt.Sprint(role["name"])
		d.roleIDs[name] = role["id"]
		d.roles = append(d.roles, pick(role, "name", "feature_flags_access_level"))
		var flags []struct {
			ID json.Number `json:"id"`
		}
		encoded, _ := role["associated_flags"].(string)
		if err := output.Decode([]byte(encoded), &flags); err != nil {
			return fmt.Errorf("flags of role %s: %w", name, err)
		}
		for _, f := range flags {
			if o := d.kinds["flags"].objects[d.kinds["flags"].labels[f.ID.String()]]; o != nil {
				names, _ := o["roles"].([]any)
				o["roles"] = append(names, name)
			}
		}
	}
	slices.SortFunc(d.roles, func(a, b any) int { return compareText(a.(object)["name"], b.(object)["name"]) })
	for _, o := range d.kinds["flags"].objects {
		if names, ok := o["roles"].([]any); ok {
			slices.SortFunc(names, compareText)
		}
	}
	return nil
}

func compareText(a, b any) int { return slices.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) }

// readScheduled reads the scheduled changes that are still to come.
func (d *definitions) readScheduled(ctx context.Context, client *remote.Client) error {
	list, err := client.All(ctx, client.Project("scheduled_changes/"), nil, 0)
	if err != nil {
		return fmt.Errorf("scheduled changes: %w", err)
	}
	d.scheduled = []any{}
	for _, text := range list {
		var change object
		if err := output.Decode(text, &change); err != nil {
			return err
		}
		flag, ok := d.kinds["flags"].labels[fmt.Sprint(change["record_id"])]
		if change["executed_at"] != nil || change["failure_reason"] != nil || !ok {
			continue
		}
		kept := pick(change, "scheduled_at", "payload")
		kept["flag"] = flag
		definitionfile.Name(kept, d.label)
		d.scheduled = append(d.scheduled, kept)
	}
	slices.SortFunc(d.scheduled, func(a, b any) int { return compareText(encoded(a), encoded(b)) })
	return nil
}

// encoded returns the JSON of decoded JSON, with sorted keys.
func encoded(v any) string {
	text, _ := json.Marshal(v) // what was decoded can be encoded
	return string(text)
}

// importRoles creates the roles that the organization lacks.
func (x *importer) importRoles(ctx context.Context, roles []definitionfile.Item) {
	for _, r := range roles {
		if x.target.roleIDs[r.Name] != nil {
			x.left++
			continue
		}
		fmt.Fprintf(x.env.Out, "create role %s\n", r.Name)
		x.created++
		if x.dryRun {
			x.target.roleIDs[r.Name] = ""
			continue
		}
		var made object
		if err := x.client.Do(ctx, http.MethodPost, rolesPath, r.Body, &made); err != nil {
			x.failures = append(x.failures, fmt.Errorf("role %s: %w", r.Name, err))
			continue
		}
		x.target.roleIDs[r.Name] = made["id"]
	}
}

// giveRoles lets the roles of a flag in the file edit it that may not yet.
func (x *importer) giveRoles(ctx context.Context, it definitionfile.Item, now object) error {
	have, _ := now["roles"].([]any)
	for _, role := range it.Roles {
		if slices.Contains(have, any(role)) || x.dryRun {
			continue
		}
		id := x.target.roleIDs[role]
		if id == nil {
			return fmt.Errorf("role %q does not exist", role)
		}
		path := x.client.Project(fmt.Sprintf("feature_flags/%v/role_access/", x.target.id(definitionfile.RefFlag, it.Name)))
		if err := x.client.Do(ctx, http.MethodPost, path, object{"role_id": id}, nil); err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
	}
	return nil
}

// importScheduled creates the scheduled changes that the project lacks.
func (x *importer) importScheduled(ctx context.Context, items []definitionfile.Item) {
	have := map[string]bool{}
	for _, v := range x.target.scheduled {
		have[scheduleKey(v.(object))] = true
	}
	for _, it := range items {
		var change object
		err := output.Decode(it.Body, &change)
		change["flag"] = it.Name
		if err == nil && have[scheduleKey(change)] {
			x.left++
			continue
		}
		fmt.Fprintf(x.env.Out, "create scheduled change of flag %s at %v\n", it.Name, change["scheduled_at"])
		x.created++
		if x.dryRun {
			continue
		}
		body, err := definitionfile.WithRecord(it, x.target.id)
		if err == nil {
			err = x.client.Do(ctx, http.MethodPost, x.client.Project("scheduled_changes/"), body, nil)
		}
		if err != nil {
			x.failures = append(x.failures, fmt.Errorf("scheduled change of flag %s (line %d): %w", it.Name, it.Line, err))
		}
	}
}

// scheduleKey identifies a scheduled change.
func scheduleKey(change object) string {
	return encoded(pick(change, "flag", "scheduled_at", "payload"))
}

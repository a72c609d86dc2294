package projectdata

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/core/definitionfile"
)

// object is the decoded JSON of a definition.
type object = map[string]any

// kinds are the kinds of definitions.
var kinds = definitionfile.Kinds

// stored are the definitions of a kind on a server. Labels are unique: a name that
// occurs again gets " #2" behind it, in the order of the ids.
type stored struct {
	objects map[string]object // by label
	labels  map[string]string // by id
	ids     map[string]any    // by label
}

// definitions are those of a project on a server.
type definitions struct {
	project    object
	retention  object
	groupTypes []any
	typeNames  map[string]string // group types by index
	typeIndex  map[string]any    // the other way round
	kinds      map[string]*stored
	roles      []any
	roleIDs    map[string]any // by name
	scheduled  []any
	warnings   []string
}

// readDefinitions reads the definitions of the project of the client.
func readDefinitions(ctx context.Context, client *remote.Client) (*definitions, error) {
	d := &definitions{kinds: map[string]*stored{}, typeNames: map[string]string{}, typeIndex: map[string]any{}, roleIDs: map[string]any{}}
	if err := d.readProject(ctx, client); err != nil {
		return nil, err
	}
	for i := range kinds {
		k := &kinds[i]
		list, err := client.All(ctx, client.Project(k.Path), nil, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Section, err)
		}
		if d.kinds[k.Section], err = indexed(k, list); err != nil {
			return nil, err
		}
	}
	if err := d.addMembers(ctx, client); err != nil {
		return nil, err
	}
	d.leaveOutSecrets()
	if err := d.readScheduled(ctx, client); err != nil {
		return nil, err
	}
	for i := range kinds {
		for _, o := range d.kinds[kinds[i].Section].objects {
			definitionfile.Name(o, d.label)
		}
	}
	return d, d.readRoles(ctx, client)
}

func (d *definitions) readProject(ctx context.Context, client *remote.Client) error {
	var project, rules json.RawMessage
	if err := client.Do(ctx, http.MethodGet, client.Project(""), nil, &project); err != nil {
		return err
	}
	if err := client.Do(ctx, http.MethodGet, client.Project("retention/"), nil, &rules); err != nil && !command.IsStatus(err, http.StatusNotFound) {
		return err
	}
	var types json.RawMessage
	if err := client.Do(ctx, http.MethodGet, client.Project("groups_types/"), nil, &types); err != nil {
		return err
	}
	var whole, kept object
	var list []object
	if err := output.Decode(project, &whole); err != nil {
		return err
	}
	if len(rules) > 0 {
		if err := output.Decode(rules, &kept); err != nil {
			return err
		}
	}
	if err := output.Decode(types, &list); err != nil {
		return err
	}
	d.project, d.retention = pick(whole, "name", "timezone", "anonymize_ips"), pick(kept, "keep", "events")
	for _, t := range list {
		name := fmt.Sprint(t["group_type"])
		d.typeNames[fmt.Sprint(t["group_type_index"])], d.typeIndex[name] = name, t["group_type_index"]
		d.groupTypes = append(d.groupTypes, pick(t, "group_type", "name_singular", "name_plural"))
	}
	return nil
}

// pick returns the fields of o with these names that are there.
func pick(o object, names ...string) object {
	out := object{}
	for _, name := range names {
		if v, ok := o[name]; ok {
			out[name] = v
		}
	}
	return out
}

// indexed returns the objects of a list that are not deleted, by label.
func indexed(k *definitionfile.Kind, list []json.RawMessage) (*stored, error) {
	s := &stored{objects: map[string]object{}, labels: map[string]string{}, ids: map[string]any{}}
	var all []object
	for _, text := range list {
		var o object
		if err := output.Decode(text, &o); err != nil {
			return nil, err
		}
		deleted, _ := o["deleted"].(bool)
		if ofFlag := k.Section == "dashboards" && o["feature_flag"] != nil; !deleted && !ofFlag { // flags create their own
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b object) int {
		x, _ := strconv.ParseInt(fmt.Sprint(a["id"]), 10, 64)
		y, _ := strconv.ParseInt(fmt.Sprint(b["id"]), 10, 64)
		return int(min(max(x-y, -1), 1))
	})
	for _, o := range all {
		label, _ := o[k.Label].(string)
		base := label
		for n := 2; s.objects[label] != nil; n++ {
			label = fmt.Sprintf("%s #%d", base, n)
		}
		id := fmt.Sprint(o["id"])
		s.labels[id], s.ids[label] = label, o["id"]
		kept := pick(o, k.Fields...)
		kept[k.Label] = label
		if encrypted, _ := o["has_encrypted_payloads"].(bool); encrypted {
			kept["has_encrypted_payloads"] = true
		}
		s.objects[label] = kept
	}
	return s, nil
}

// addMembers adds the persons of static cohorts, each by its first distinct id.
func (d *definitions) addMembers(ctx context.Context, client *remote.Client) error {
	all := d.kinds["cohorts"]
	for label, o := range all.objects {
		if static, _ := o["is_static"].(bool); !static {
			continue
		}
		delete(o, "filters")
		list, err := client.All(ctx, client.Project(fmt.Sprintf("cohorts/%v/persons/", all.ids[label])), url.Values{}, 0)
		if err != nil {
			return fmt.Errorf("persons of cohort %s: %w", label, err)
		}
		members := []string{}
		for _, text := range list {
			var p struct {
				DistinctIDs []string `json:"distinct_ids"`
			}
			if err := json.Unmarshal(text, &p); err != nil {
				return err
			}
			if len(p.DistinctIDs) > 0 {
				members = append(members, p.DistinctIDs[0])
			}
		}
		slices.Sort(members)
		values := make([]any, len(members))
		for i, m := range members {
			values[i] = m
		}
		o["distinct_ids"] = values
	}
	return nil
}

// leaveOutSecrets removes encrypted payloads, which a server shows redacted.
func (d *definitions) leaveOutSecrets() {
	for label, o := range d.kinds["flags"].objects {
		if o["has_encrypted_payloads"] == nil {
			continue
		}
		delete(o, "has_encrypted_payloads")
		if filters, ok := o["filters"].(object); ok {
			delete(filters, "payloads")
		}
		d.warnings = append(d.warnings, fmt.Sprintf("flag %s: encrypted payloads are not exported", label))
	}
	slices.Sort(d.warnings)
}

// label returns the name of a definition of the project.
func (d *definitions) label(kind, id string) (name string, ok bool) {
	switch kind {
	case definitionfile.RefGroupType:
		name, ok = d.typeNames[id]
	default:
		name, ok = d.kinds[kind+"s"].labels[id]
	}
	return name, ok
}

// id returns the id of a definition of the project, nil without one.
func (d *definitions) id(kind, name string) any {
	if kind == definitionfile.RefGroupType {
		return d.typeIndex[name]
	}
	return d.kinds[kind+"s"].ids[name]
}

// document returns the definitions in a fixed order, as a file.
func (d *definitions) document() object {
	project := object{"retention": d.retention, "group_types": d.groupTypes, "scheduled_changes": d.scheduled}
	maps.Copy(project, d.project)
	for i := range kinds {
		list := []any{}
		all := d.kinds[kinds[i].Section].objects
		for _, label := range slices.Sorted(maps.Keys(all)) {
			list = append(list, all[label])
		}
		project[kinds[i].Section] = list
	}
	return object{"format": definitionfile.Format, "roles": d.roles, "projects": []any{project}}
}

func (d *definitions) summary() string {
	var parts []string
	for i := range kinds {
		parts = append(parts, command.Plural(len(d.kinds[kinds[i].Section].objects), kinds[i].One))
	}
	return strings.Join(parts, ", ")
}

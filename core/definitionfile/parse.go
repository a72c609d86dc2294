package definitionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/core/text"
)

// The levels of a user.
var levels = []string{"member", "admin", "owner"}

// Keys of the other objects.
var (
	fileKeys     = []string{"format", "personal_key", "roles", "projects", "users"}
	settingsKeys = []string{"timezone", "anonymize_ips"}
	userKeys     = []string{"email", "name", "level", "operator", "key"}
)

// projectKeys are the keys of a project.
func projectKeys() []string {
	keys := append([]string{"name", "key", "retention", sectionGroupTypes, sectionScheduled}, settingsKeys...)
	for i := range Kinds {
		keys = append(keys, Kinds[i].Section)
	}
	return keys
}

// Parse reads a file. The error is an *Error with every problem.
func Parse(name string, source []byte) (*File, error) {
	p := &parser{}
	var root, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(source))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{name, []Problem{syntaxProblem(err)}}
	}
	if err := documents.Decode(&second); err == nil {
		p.fail(&second, "the file has a second document; write one")
	} else if !errors.Is(err, io.EOF) {
		return nil, &Error{name, []Problem{syntaxProblem(err)}}
	}
	f := &File{Name: name}
	if len(root.Content) > 0 {
		p.file(root.Content[0], f)
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &Error{name, p.problems}
	}
	return f, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxProblem(err error) Problem {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return Problem{1, err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	return Problem{max(line, 1), err.Error()[len(m[0]):]}
}

// maxNodes bounds the values of a file with those that aliases repeat.
const maxNodes = 1_000_000

// maxDepth bounds the nesting of a value; an alias within its own anchor has no end.
const maxDepth = 200

// parser collects the problems of a file.
type parser struct {
	problems []Problem
	nodes    int
	depth    int
}

// count counts a value. It returns false if the file has too many.
func (p *parser) count(n *yaml.Node) bool {
	if p.nodes++; p.nodes == maxNodes {
		p.fail(n, "the file is too large: it has more than %d values", maxNodes)
	}
	return p.nodes < maxNodes
}

// maxProblems bounds the problems that are reported.
const maxProblems = 1000

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	if len(p.problems) == maxProblems {
		return
	}
	p.problems = append(p.problems, Problem{n.Line, fmt.Sprintf(format, args...)})
}

// fields returns the values of a mapping by key. Unknown and duplicate keys are
// problems.
func (p *parser) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	n = resolve(n)
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s must be a mapping of keys to values", what)
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case out[key.Value] != nil:
			p.fail(key, "duplicate key %q", key.Value)
		case !slices.Contains(known, key.Value):
			p.fail(key, "unknown key %q in %s%s", key.Value, what, hint(key.Value, what, known))
		default:
			out[key.Value] = value
		}
	}
	return out
}

// hint is what a message says about an unknown key.
func hint(name, what string, known []string) string {
	if name == "id" && what == "a cohort" {
		return ": filters refer to a cohort by its name (value: NAME)"
	}
	if near := text.Nearest(name, slices.Values(known), max(1, len(name)/3)); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// list calls each for the elements of a sequence; nil is none.
func (p *parser) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	if n == nil || resolve(n).Tag == "!!null" {
		return
	}
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		p.fail(n, "%s must be a list", what)
		return
	}
	for _, item := range n.Content {
		if !p.count(item) {
			return
		}
		each(item)
	}
}

// text returns a string; nil is "".
func (p *parser) text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	if r := resolve(n); r.Kind == yaml.ScalarNode && r.Tag == "!!str" {
		return r.Value
	}
	p.fail(n, "%s must be a text; write it in quotes", what)
	return ""
}

// required is text that must not be empty.
func (p *parser) required(at, n *yaml.Node, what string) string {
	if n == nil {
		p.fail(at, "%s is missing", what)
		return ""
	}
	before := len(p.problems)
	s := p.text(n, what)
	if s == "" && len(p.problems) == before {
		p.fail(n, "%s is empty", what)
	}
	return s
}

func (p *parser) file(n *yaml.Node, f *File) {
	fields := p.fields(n, "the file", fileKeys)
	if format := fields["format"]; format != nil {
		if got := p.text(format, "format"); got != Format {
			p.fail(format, "the format is %q and not %s: this version reads no other; export the project again", got, Format)
			return
		}
	}
	f.PersonalKey = p.text(fields["personal_key"], "personal_key")
	f.Roles = p.items(fields["roles"], "roles", "role", "name", roleKeys)
	names := map[string]bool{}
	keys := map[string]bool{f.PersonalKey: true}
	p.list(fields["projects"], "projects", func(n *yaml.Node) {
		project := p.project(n)
		p.unique(n, names, "project", project.Name)
		p.unique(n, names, "project with the key", project.Key)
		f.Projects = append(f.Projects, project)
	})
	p.list(fields["users"], "users", func(n *yaml.Node) {
		u := p.user(n)
		p.unique(n, names, "user", u.Email)
		if u.Key != "" && keys[u.Key] {
			p.fail(n, "user %s has the personal key of another user", u.Email)
		}
		keys[u.Key] = true
		f.Users = append(f.Users, u)
	})
}

// unique reports a second name of a kind; an empty name is not compared.
func (p *parser) unique(n *yaml.Node, seen map[string]bool, kind, name string) {
	if name != "" && seen[kind+" "+name] {
		p.fail(n, "second %s %q", kind, name)
	}
	seen[kind+" "+name] = true
}

func (p *parser) project(n *yaml.Node) Project {
	fields := p.fields(n, "a project", projectKeys())
	out := Project{
		Line: n.Line, Name: p.required(n, fields["name"], "name of the project"),
		Key: p.text(fields["key"], "key"), Definitions: map[string][]Item{},
	}
	settings := map[string]any{}
	for _, name := range settingsKeys {
		if fields[name] != nil {
			settings[name] = p.value(fields[name])
		}
	}
	if len(settings) > 0 {
		out.Settings = p.encode(n, settings)
	}
	if kept := fields["retention"]; kept != nil {
		if resolve(kept).Kind != yaml.MappingNode {
			p.fail(kept, "retention must be a mapping of keys to values")
		}
		out.Retention = p.encode(kept, p.value(kept))
	}
	out.GroupTypes = p.items(fields[sectionGroupTypes], sectionGroupTypes, "group type", "group_type", groupTypeKeys)
	for i := range Kinds {
		k := &Kinds[i]
		known := append(append([]string{k.Label}, k.Fields...), k.also...)
		out.Definitions[k.Section] = p.items(fields[k.Section], k.Section, k.One, k.Label, known)
	}
	p.list(fields[sectionScheduled], sectionScheduled, func(n *yaml.Node) {
		out.Scheduled = append(out.Scheduled, p.scheduled(n))
	})
	return out
}

// scheduled returns a scheduled change in the form of the management API.
func (p *parser) scheduled(n *yaml.Node) Item {
	fields := p.fields(n, "a scheduled change", scheduledKeys)
	it := Item{Line: n.Line, Name: p.required(n, fields["flag"], "flag of the scheduled change")}
	body := map[string]any{"model_name": "FeatureFlag"}
	for _, name := range []string{"scheduled_at", "payload"} {
		if fields[name] == nil {
			p.fail(n, "%s of the scheduled change is missing", name)
			continue
		}
		body[name] = p.value(fields[name])
	}
	it.Body = p.encode(n, body)
	return it
}

// encode returns the JSON of a value.
func (p *parser) encode(n *yaml.Node, v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		p.fail(n, "%v", err)
	}
	return body
}

func (p *parser) user(n *yaml.Node) User {
	fields := p.fields(n, "a user", userKeys)
	u := User{
		Line: n.Line, Email: p.required(n, fields["email"], "email of the user"), Name: p.text(fields["name"], "name"),
		Level: "member", Key: p.text(fields["key"], "key"),
	}
	if level := fields["level"]; level != nil {
		if u.Level = p.text(level, "level"); !slices.Contains(levels, u.Level) {
			p.fail(level, "level must be member, admin or owner")
		}
	}
	if operator := fields["operator"]; operator != nil && resolve(operator).Decode(&u.Operator) != nil {
		p.fail(operator, "operator must be true or false")
	}
	return u
}

// items reads a list of definitions, which are named by the field named.
func (p *parser) items(n *yaml.Node, list, kind, named string, known []string) []Item {
	var out []Item
	seen := map[string]bool{}
	p.list(n, list, func(n *yaml.Node) {
		it := p.item(n, kind, named, known)
		p.unique(n, seen, kind, it.Name)
		out = append(out, it)
	})
	return out
}

func (p *parser) item(n *yaml.Node, kind, named string, known []string) Item {
	what := "a " + kind
	if kind == "action" {
		what = "an action"
	}
	fields := p.fields(n, what, known)
	it := Item{Line: n.Line, Name: p.required(n, fields[named], named+" of the "+kind)}
	p.list(fields[rolesField], rolesField, func(n *yaml.Node) { it.Roles = append(it.Roles, p.text(n, "role")) })
	delete(fields, rolesField)
	body := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		body[name] = p.value(fields[name])
	}
	if kind == "flag" && body["filters"] == nil {
		body["filters"] = map[string]any{"groups": []any{map[string]any{"properties": []any{}, "rollout_percentage": 100}}}
	}
	it.Body = p.encode(n, body)
	return it
}

var errNumber = errors.New("not a finite number")

// value returns the value of a node as JSON knows it: a date stays the text that it
// is written as, and keys are texts.
func (p *parser) value(n *yaml.Node) any {
	at := n
	n = resolve(n)
	if !p.count(n) {
		return nil
	}
	if p.depth++; p.depth > maxDepth {
		p.fail(at, "the value is nested deeper than %d levels, or contains itself by an alias", maxDepth)
		p.nodes = maxNodes // the values that remain are not read
	}
	defer func() { p.depth-- }()
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if _, double := out[n.Content[i].Value]; double {
				p.fail(n.Content[i], "duplicate key %q", n.Content[i].Value)
			}
			if n.Content[i].Tag == "!!merge" {
				p.fail(n.Content[i], "a merge key (<<) is not supported; an alias stands for a whole value")
			}
			out[n.Content[i].Value] = p.value(n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, p.value(item))
		}
		return out
	default:
		v, err := scalar(n)
		if err != nil {
			p.fail(n, "%s: %v", n.Value, err)
		}
		return v
	}
}

func scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		err := n.Decode(&b)
		return b, err
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		var f float64
		if err := n.Decode(&f); err != nil || f != f || f-f != 0 {
			return nil, errNumber
		}
		return f, nil
	}
	return n.Value, nil
}

// maxAliases bounds a chain of aliases.
const maxAliases = 10

// resolve returns the node that an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for range maxAliases {
		if n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return n
}

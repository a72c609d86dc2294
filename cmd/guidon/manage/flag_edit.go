package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// flagFields are the options for fields of a flag.
type flagFields struct {
	Name    *string  `help:"Description of the flag." placeholder:"TEXT"`
	Rollout *float64 `help:"Percentage of persons for whom the flag is on." placeholder:"PERCENT"`
	Tag     []string `help:"A tag; repeat it for more."`
	File    string   `help:"YAML or JSON file with fields of the API, such as filters; - for the standard input." placeholder:"FILE"`
}

// read returns the fields of the options. Those of the file come first.
func (f flagFields) read(e *command.Env) (map[string]any, error) {
	fields := map[string]any{}
	if f.File != "" {
		var err error
		if fields, err = readFields(e, f.File); err != nil {
			return nil, err
		}
	}
	if f.Name != nil {
		fields["name"] = *f.Name
	}
	if f.Tag != nil {
		fields["tags"] = f.Tag
	}
	if f.Rollout != nil && (*f.Rollout < 0 || *f.Rollout > 100) {
		return nil, fmt.Errorf("--rollout: %v is not between 0 and 100", *f.Rollout)
	}
	return fields, nil
}

// readFields reads an object from a file, or from the standard input for "-".
func readFields(e *command.Env, path string) (map[string]any, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(e.In, 16<<20))
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	return parseFields(path, text)
}

func parseFields(name string, text []byte) (map[string]any, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if fields == nil {
		return nil, fmt.Errorf("%s holds no fields", name)
	}
	return fields, nil
}

type flagCreateCmd struct {
	command.Remote `embed:""`
	flagFields     `embed:""`
	FlagKey        string `arg:"" name:"flag" help:"Key of the flag."`
	Off            bool   `help:"Make it switched off."`
	DryRun         bool   `name:"dry-run" help:"Print what would be sent; change nothing."`
}

func (c flagCreateCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	fields["key"] = c.FlagKey
	if c.Off {
		fields["active"] = false
	}
	if _, given := fields["filters"]; !given {
		fields["filters"] = map[string]any{"groups": []any{map[string]any{"properties": []any{}, "rollout_percentage": 0.0}}}
	}
	if c.Rollout != nil {
		if fields["filters"], err = setRollout(fields["filters"], *c.Rollout); err != nil {
			return err
		}
	}
	if c.DryRun {
		return c.PrintOne(e, fields)
	}
	return flagChange{Remote: c.Remote}.apply(e, client, http.MethodPost, client.Project("feature_flags/"), fields)
}

type flagEditCmd struct {
	flagArg
	flagFields `embed:""`
}

// Run changes the fields of the options, or without one those that the user changes in
// an editor. It fails if the flag has changed since it was read.
func (c flagEditCmd) Run(e *command.Env) error {
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	return c.change().patch(e, "change", func(f flag, whole map[string]any) (map[string]any, error) {
		if len(fields) == 0 && c.Rollout == nil {
			if fields, err = editFields("flag", f.Key, editable, whole); err != nil || len(fields) == 0 {
				return nil, err
			}
		}
		if c.Rollout != nil {
			filters := fields["filters"]
			if filters == nil {
				filters = whole["filters"]
			}
			if fields["filters"], err = setRollout(filters, *c.Rollout); err != nil {
				return nil, err
			}
		}
		fields["version"] = f.Version
		return fields, nil
	})
}

// editable are the fields of a flag that an editor shows.
var editable = []string{
	"key", "name", "active", "filters", "tags", "ensure_experience_continuity", "evaluation_runtime", "evaluation_contexts",
	"bucketing_identifier", "is_remote_configuration",
}

// editFields shows the fields of an object in the editor of the user, and returns those
// that were changed. kind and key name the object.
func editFields(kind, key string, fields []string, whole map[string]any) (map[string]any, error) {
	shown := map[string]any{}
	for _, name := range fields {
		if value, ok := whole[name]; ok {
			shown[name] = value
		}
	}
	before, err := yaml.Marshal(output.Literal(shown))
	if err != nil {
		return nil, err
	}
	after, err := editText(kind+"-"+strings.Map(fileName, key)+"-*.yaml", before)
	if err != nil {
		return nil, err
	}
	edited, err := parseFields("the edited "+kind, after)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(before, &shown); err != nil { // the types of YAML
		return nil, err
	}
	maps.DeleteFunc(edited, func(name string, value any) bool { return reflect.DeepEqual(value, shown[name]) })
	return edited, nil
}

func fileName(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
		return r
	}
	return '-'
}

// editText opens a file with the text in $VISUAL, $EDITOR or vi, and returns its content
// after the editor has ended.
func editText(pattern string, text []byte) (edited []byte, err error) {
	editor := cmp.Or(strings.TrimSpace(os.Getenv("VISUAL")), strings.TrimSpace(os.Getenv("EDITOR")))
	if editor == "" && !command.IsTerminal(os.Stdin) {
		return nil, errors.New("there is no terminal for an editor; give options or --file")
	}
	editor = cmp.Or(editor, "vi")
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	args := append(strings.Fields(editor), f.Name())
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("editor %s: %w", editor, err)
	}
	return os.ReadFile(f.Name())
}

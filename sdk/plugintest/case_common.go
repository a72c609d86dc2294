package plugintest

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// instanceID is the instance that the cases of a kind use.
const instanceID = "conformance"

const strange = "no_such_key_of_plugintest"

var (
	validName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$`)
	validVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
)

// common is what every plugin does, whatever its kind.
var common = group{"common", []oneCase{
	{"says what it is", func(c *check) {
		if c.info == nil {
			c.skip("it never came up")
		}
		switch {
		case len(c.info.GetName()) > 100, len(c.info.GetVersion()) > 100:
			c.fail("its name and its version have %d and %d bytes; the most is 100", len(c.info.GetName()), len(c.info.GetVersion()))
		case !validName.MatchString(c.info.GetName()):
			c.fail("its name %q is not lower case with at most one slash", observe.Clip(c.info.GetName()))
		case !validVersion.MatchString(c.info.GetVersion()):
			c.fail("its version %q is not semantic", observe.Clip(c.info.GetVersion()))
		case len(c.info.GetKinds()) == 0:
			c.fail("it offers no kind")
		}
		c.sane("max_message_bytes", c.info.GetMaxMessageBytes(), 1<<31)
		for kind, name := range kindNames {
			if name == c.target.Kind {
				c.kind = kind
			}
		}
		if c.target.Kind == "" {
			var ok bool
			if c.kind, ok = only(c.info); !ok {
				c.fail("it offers %v: say which kind to judge", c.info.GetKinds())
			}
		}
		if !slices.Contains(c.info.GetKinds(), c.kind) {
			c.fail("it offers %v and not %s", c.info.GetKinds(), c.target.Kind)
		}
	}},
	{"describes its config", func(c *check) {
		schema := c.schema()
		if _, ok := schema.(map[string]any); !ok {
			c.fail("its schema is no object")
		}
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft2020)
		c.no(compiler.AddResource("schema.json", schema), "read its schema")
		compiled, err := compiler.Compile("schema.json")
		c.no(err, "compile its schema")
		c.no(compiled.Validate(c.plain(c.target.Config)), "hold the config against its schema")
	}},
	{"takes its config", func(c *check) {
		out := c.validate(c.target.Config)
		if !out.GetValid() {
			c.fail("Validate refuses the config: %s", diagnostics(out.GetDiagnostics()))
		}
	}},
	{"refuses a key it does not know and says where", func(c *check) {
		config := maps.Clone(c.target.Config)
		if config == nil {
			config = map[string]any{}
		}
		config[strange] = 1
		out := c.validate(config)
		if out.GetValid() {
			c.fail("Validate takes a config with the key %s", strange)
		}
		for _, d := range out.GetDiagnostics() {
			if strings.HasPrefix(d.GetPointer(), "/"+strange) {
				return
			}
		}
		c.fail("no diagnostic points at /%s: %s", strange, diagnostics(out.GetDiagnostics()))
	}},
	{"says the same at every start", sameStartCase},
	{"gives its metrics at once", metricsCase},
	{"keeps secrets to itself", secretCase},
	{"takes the same generation twice and no older one", func(c *check) {
		const id = "generations"
		defer c.closeInstance(id)
		for _, step := range []struct {
			generation uint64
			accepted   bool
		}{{5, true}, {5, true}, {4, false}, {6, true}} {
			out := c.configure(id, step.generation, c.target.Config)
			if out.GetAccepted() != step.accepted {
				c.fail("generation %d: accepted is %v, want %v: %s %s", step.generation, out.GetAccepted(), step.accepted,
					diagnostics(out.GetDiagnostics()), out.GetError().GetMessage())
			}
		}
	}},
	{"keeps two instances apart", func(c *check) {
		c.needKind()
		if !c.info.GetMultiInstance() {
			c.skip("it says that a process serves one instance only")
		}
		other := c.target.Other
		if other == nil {
			other = c.target.Config
		}
		c.accepted("first", c.target.Config)
		c.accepted("second", other)
		c.closeInstance("first")
		defer c.closeInstance("second")
		health := c.health()
		if s := health["second"]; s == nil || s.GetStatus() == pluginv1.InstanceHealth_STATUS_FAILED {
			c.fail("closing one instance harmed the other: %v", s)
		}
		if health["first"] != nil {
			c.fail("a closed instance is still reported")
		}
	}},
	{"closes what it does not know", func(c *check) {
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		out, err := c.process().Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: "never-there"})
		c.no(err, "Close")
		if !out.GetClosed() {
			c.fail("closing an instance that is not there is no success")
		}
	}},
}}

// needKind skips when it is not known what the plugin is.
func (c *check) needKind() {
	if c.info == nil || c.kind == pluginv1.Kind_KIND_UNSPECIFIED {
		c.skip("its kind is not known")
	}
}

func (c *check) schema() any {
	c.needKind()
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	out, err := c.process().Plugin().ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: c.kind})
	c.no(err, "ConfigSchema")
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.GetJsonSchema()))
	c.no(err, "read its schema")
	return schema
}

// plain is a config as JSON has it.
func (c *check) plain(config map[string]any) any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.encoded(config).GetConfigJson()))
	c.no(err, "read the config")
	return v
}

func (c *check) validate(config map[string]any) *pluginv1.ValidateResponse {
	c.needKind()
	ctx, cancel := c.call(20 * time.Second)
	defer cancel()
	out, err := c.process().Plugin().Validate(ctx, &pluginv1.ValidateRequest{InstanceId: instanceID, Config: c.encoded(config), Kind: c.kind})
	c.no(err, "Validate")
	return out
}

func (c *check) configure(id string, generation uint64, config map[string]any) *pluginv1.ConfigureResponse {
	return c.configureIn(c.process(), id, generation, config)
}

func (c *check) configureIn(p *candidate.Process, id string, generation uint64, config map[string]any) *pluginv1.ConfigureResponse {
	c.needKind()
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	out, err := p.Plugin().Configure(ctx, &pluginv1.ConfigureRequest{InstanceId: id, Generation: generation, Config: c.encoded(config), Kind: c.kind})
	c.no(err, "Configure")
	return out
}

// accepted configures an instance, which must work.
func (c *check) accepted(id string, config map[string]any) {
	if out := c.configure(id, 1, config); !out.GetAccepted() {
		c.fail("Configure refuses the config: %s %s", diagnostics(out.GetDiagnostics()), out.GetError().GetMessage())
	}
}

func (c *check) closeInstance(id string) {
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	if _, err := c.process().Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: id}); err != nil {
		c.fail("Close: %v", err)
	}
}

func (c *check) health() map[string]*pluginv1.InstanceHealth {
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	out, err := c.process().Plugin().Health(ctx, &pluginv1.HealthRequest{})
	c.no(err, "Health")
	found := map[string]*pluginv1.InstanceHealth{}
	for _, h := range out.GetInstances() {
		found[h.GetInstanceId()] = h
	}
	return found
}

func diagnostics(list []*pluginv1.Diagnostic) string {
	var out []string
	for _, d := range list {
		out = append(out, strings.TrimSpace(d.GetPointer()+" "+d.GetSummary()+" "+d.GetDetail()))
	}
	if len(out) == 0 {
		return "it says nothing of why"
	}
	return strings.Join(out, "; ")
}

// failed returns the text of a protocol error.
func failed(e *pluginv1.Error) string {
	if e == nil {
		return "without a reason"
	}
	raw, _ := json.Marshal(e.GetMessage())
	return strings.ToLower(strings.TrimPrefix(e.GetClass().String(), "CLASS_")) + " " + e.GetCode() + " " + string(raw)
}

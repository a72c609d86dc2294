package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// inspector asks one process what it is.
type inspector struct {
	process *candidate.Process
	target  Target
	ctx     context.Context
}

// call returns the context of one call.
func (a *inspector) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.ctx, callLimit)
}

func (a *inspector) describe() (*Description, error) {
	info, err := a.info()
	if err != nil {
		return nil, err
	}
	d := &Description{
		Name: shorten(info.GetName()), Version: shorten(info.GetVersion()), Summary: shorten(info.GetSummary()), SDK: shorten(info.GetSdk()),
		Protocol: fmt.Sprintf("%d.%d", sdk.ProtocolVersion, info.GetProtocolMinor()), Features: shortenAll(info.GetFeatures()),
		MaxMessageBytes: info.GetMaxMessageBytes(), MultiInstance: info.GetMultiInstance(), Exclusive: info.GetExclusive(),
		Deprecations: shortenAll(info.GetDeprecations()), Configs: []Config{},
	}
	if d.MaxMessageBytes == 0 {
		d.MaxMessageBytes = 4 << 20 // the default of the contract
	}
	var kinds []pluginv1.Kind
	for _, kind := range info.GetKinds()[:min(len(info.GetKinds()), maxItems)] {
		name, known := kindNames[kind]
		if !known {
			name = strings.ToLower(strings.TrimPrefix(kind.String(), "KIND_"))
		}
		d.Kinds = append(d.Kinds, name)
		if known && (a.target.Kind == "" || a.target.Kind == name) {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(d.Kinds) == 0:
		return nil, fmt.Errorf("%s %s offers no kind", d.Name, d.Version)
	case len(kinds) == 0 && a.target.Kind != "":
		return nil, fmt.Errorf("%s is a %s and no %s", d.Name, strings.Join(d.Kinds, " and "), a.target.Kind)
	}
	for _, kind := range kinds {
		c, err := a.config(kind)
		if err != nil {
			return nil, fmt.Errorf("the schema of the %s %s: %w", kindNames[kind], d.Name, err)
		}
		d.Configs = append(d.Configs, *c)
		if kind == pluginv1.Kind_KIND_MATCHER {
			if d.Operators, err = a.operators(); err != nil {
				d.OperatorsMissing = shorten(err.Error())
			}
		}
	}
	return d, nil
}

func (a *inspector) info() (*pluginv1.InfoResponse, error) {
	ctx, cancel := a.call()
	defer cancel()
	info, err := a.process.Plugin().Info(ctx, &pluginv1.InfoRequest{HostName: "guidon", HostVersion: sdk.Version, ProtocolMinor: sdk.ProtocolMinor}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("%w: it shakes hands and does not answer Info: %w", ErrNoPlugin, err)
	}
	return info, nil
}

// config asks for the config of a kind.
func (a *inspector) config(kind pluginv1.Kind) (*Config, error) {
	ctx, cancel := a.call()
	defer cancel()
	out, err := a.process.Plugin().ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: kind})
	if err != nil {
		return nil, err
	}
	if len(out.GetJsonSchema()) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; %d are allowed", len(out.GetJsonSchema()), maxSchema)
	}
	if err := compile(out.GetJsonSchema()); err != nil {
		return nil, err
	}
	c := &Config{Kind: kindNames[kind], Secrets: shortenAll(out.GetSecretPointers()), Schema: out.GetJsonSchema(), Options: Options(out.GetJsonSchema())}
	if len(out.GetDefaultsJson()) <= maxSchema && json.Valid(out.GetDefaultsJson()) {
		c.Defaults = out.GetDefaultsJson()
	}
	return c, nil
}

// compile returns why a JSON Schema cannot be used.
func compile(schema []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // loads nothing
	if err := compiler.AddResource("schema.json", doc); err != nil {
		return err
	}
	_, err = compiler.Compile("schema.json")
	return err
}

// instanceID names the instance that is opened to list operators.
const instanceID = "describe"

// operators opens a matcher and asks for its operators.
func (a *inspector) operators() ([]Operator, error) {
	ctx, cancel := a.call()
	defer cancel()
	config, err := json.Marshal(a.target.Config)
	if err != nil {
		return nil, err
	}
	if a.target.Config == nil {
		config = []byte("{}")
	}
	set, err := a.process.Plugin().Configure(ctx, &pluginv1.ConfigureRequest{
		InstanceId: instanceID, Generation: 1, Config: &pluginv1.Config{ConfigJson: config}, Kind: pluginv1.Kind_KIND_MATCHER,
	})
	if err != nil {
		return nil, err
	}
	if !set.GetAccepted() {
		return nil, fmt.Errorf("it needs a config: %s", problems(set))
	}
	opened, err := a.process.Matcher().Open(ctx, &matchv1.OpenRequest{InstanceId: instanceID})
	if err != nil {
		return nil, err
	}
	if !opened.GetOpened() {
		return nil, fmt.Errorf("it does not open: %s", opened.GetError().GetMessage())
	}
	out, err := a.process.Matcher().Describe(ctx, &matchv1.DescribeRequest{InstanceId: instanceID})
	if err != nil {
		return nil, err
	}
	if !out.GetDescribed() {
		return nil, fmt.Errorf("it does not describe them: %s", out.GetError().GetMessage())
	}
	var list []Operator
	for _, op := range out.GetOperators()[:min(len(out.GetOperators()), maxItems)] {
		list = append(list, newOperator(op))
	}
	_, _ = a.process.Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: instanceID}) // the process ends next
	return list, nil
}

func newOperator(op *matchv1.Operator) Operator {
	o := Operator{
		ID: shorten(op.GetId()), Label: shorten(op.GetLabel()), Doc: shorten(op.GetDoc()), PropertyTypes: shortenAll(op.GetPropertyTypes()),
		Missing: strings.ToLower(strings.TrimPrefix(op.GetMissing().String(), "MISSING_")),
		Purity:  strings.ToLower(strings.TrimPrefix(op.GetPurity().String(), "PURITY_")),
	}
	if len(op.GetValueSchema()) <= maxSchema && json.Valid(op.GetValueSchema()) {
		o.ValueSchema = op.GetValueSchema()
	}
	return o
}

// problems returns why a config was refused.
func problems(out *pluginv1.ConfigureResponse) string {
	var parts []string
	for _, d := range out.GetDiagnostics() {
		parts = append(parts, strings.TrimSpace(strings.TrimPrefix(d.GetPointer(), "/")+" "+d.GetSummary()))
	}
	if message := out.GetError().GetMessage(); message != "" {
		parts = append(parts, message)
	}
	if len(parts) == 0 {
		return "it gives no reason"
	}
	return strings.Join(parts, "; ")
}

// shutDown requests the end of the process and waits for it.
func (a *inspector) shutDown() {
	ctx, cancel := a.call()
	defer cancel()
	_ = a.process.Shutdown(ctx) // it may be gone before it answers
	a.process.Ends(endLimit)
}

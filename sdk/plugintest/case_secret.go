package plugintest

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// canary is a secret that must not appear anywhere.
const canary = "plugintest-canary-8d21f0"

// secretCase gives an instance secrets that lead nowhere, lets it fail, and reads
// all its output.
func secretCase(c *check) {
	c.needKind()
	ctx, cancel := c.call(20 * time.Second)
	defer cancel()
	p := c.process()
	schema, err := p.Plugin().ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: c.kind})
	c.no(err, "ConfigSchema")
	config := c.withCanary(schema.GetSecretPointers())
	if len(config.GetSecrets()) == 0 {
		c.skip("its config has no secret")
	}
	const id = "canary"
	defer c.closeInstance(id)
	c.silent(p.Plugin().Validate(ctx, &pluginv1.ValidateRequest{InstanceId: id, Config: config, Kind: c.kind}))
	c.silent(p.Plugin().Configure(ctx, &pluginv1.ConfigureRequest{InstanceId: id, Generation: 1, Config: config, Kind: c.kind}))
	switch c.kind {
	case pluginv1.Kind_KIND_SINK:
		c.silent(p.Sink().Open(ctx, &sinkv1.OpenRequest{InstanceId: id}))
	case pluginv1.Kind_KIND_NOTIFIER:
		c.silent(p.Notifier().Open(ctx, &notifyv1.OpenRequest{InstanceId: id}))
		c.silent(p.Notifier().Notify(ctx, &notifyv1.NotifyRequest{InstanceId: id, Items: []*notifyv1.Notification{c.notification("nobody reads this")}}))
	default:
		c.silent(p.Matcher().Open(ctx, &matchv1.OpenRequest{InstanceId: id}))
	}
	c.silent(p.Plugin().Check(ctx, &pluginv1.CheckRequest{InstanceId: id}))
	c.silent(p.Plugin().Health(ctx, &pluginv1.HealthRequest{}))
	if strings.Contains(p.Stderr()+p.Stdout(), canary) {
		c.fail("a secret of the config stands in its log")
	}
}

// silent fails when an answer, or the error instead of one, holds the secret.
func (c *check) silent(answer proto.Message, err error) {
	text, _ := protojson.Marshal(answer) // nil after an error, which is looked at
	if err != nil {
		text = append(text, err.Error()...)
	}
	if strings.Contains(string(text), canary) {
		c.fail("a secret of the config stands in an answer: %s", observe.Clip(string(text)))
	}
}

// withCanary is the config of the target with secrets in the places that can
// hold one, as the host gives them: apart from the config.
func (c *check) withCanary(pointers []string) *pluginv1.Config {
	root, _ := c.plain(c.target.Config).(map[string]any)
	secrets := map[string][]byte{}
	for _, pointer := range pointers {
		keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
		at, last := root, len(keys)-1
		for _, key := range keys[:last] {
			at, _ = at[key].(map[string]any)
		}
		if at == nil || keys[last] == "*" {
			continue
		}
		if _, text := at[keys[last]].(string); at[keys[last]] == nil || text {
			at[keys[last]], secrets[pointer] = "${env:CANARY}", []byte(canary)
		}
	}
	raw, err := json.Marshal(root)
	c.no(err, "encode the config")
	return &pluginv1.Config{ConfigJson: raw, Secrets: secrets}
}

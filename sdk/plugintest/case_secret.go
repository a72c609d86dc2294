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
	schema, err := p.plugin().ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: c.kind})
	c.no(err, "ConfigSchema")
	config := c.withCanary(schema.GetSecretPointers())
	if len(config.GetSecrets()) == 0 {
		c.skip("its config has no secret")
	}
	const id = "canary"
	defer c.closeInstance(id)
	c.silent(p.plugin().Validate(ctx, &pluginv1.ValidateRequest{InstanceId: id, Config: config, Kind: c.kind}))
	c.silent(p.plugin().Configure(ctx, &pluginv1.ConfigureRequest{InstanceId: id, Generation: 1, Config: config, Kind: c.kind}))
	switch c.kind {
	case pluginv1.Kind_KIND_SINK:
		c.silent(p.sink().Open(ctx, &sinkv1.OpenRequest{InstanceId: id}))
	case pluginv1.Kind_KIND_NOTIFIER:
		c.silent(p.notifier().Open(ctx, &notifyv1.OpenRequest{InstanceId: id}))
		c.silent(p.notifier().Notify(ctx, &notifyv1.NotifyRequest{InstanceId: id, Items: []*notifyv1.Notification{c.notification("nobody reads this")}}))
	default:
		c.silent(p.matcher().Open(ctx, &matchv1.OpenRequest{InstanceId: id}))
	}
	c.silent(p.plugin().Check(ctx, &pluginv1.CheckRequest{InstanceId: id}))
	c.silent(p.plugin().Health(ctx, &pluginv1.HealthRequest{}))
	if strings.Contains(p.said()+p.printed(), canary) {
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
		c.fail("a secret of the config stands in an answer: %s", clip(string(text)))
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

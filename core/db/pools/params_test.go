package pools_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/db/pools"
)

func TestSetDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ parameter, options, want string }{
		{"", "", "off"}, {"on", "", "on"}, {"on", "-c jit=off", "on"},
		{"", "-c jit=on", ""}, {"", "-cjit=on", ""}, {"", "--jit=on", ""}, {"", "-c geqo=off -c JIT=on", ""},
		{"", "-c jit_above_cost=5", "off"}, {"", "-c search_path=jit", "off"}, {"", "-c statement-timeout=5", "off"},
	} {
		params := map[string]string{"options": c.options}
		if c.parameter != "" {
			params["jit"] = c.parameter
		}
		if pools.SetDefault(params, "jit", "off"); params["jit"] != c.want {
			t.Errorf("%q and options %q: got %q, want %q", c.parameter, c.options, params["jit"], c.want)
		}
	}
	params := map[string]string{"options": "--statement-timeout=5"}
	if pools.SetDefault(params, "statement_timeout", "9"); params["statement_timeout"] != "" {
		t.Errorf("the option --statement-timeout is overridden by %s", params["statement_timeout"])
	}
}

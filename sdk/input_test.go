package sdk_test

import (
	"encoding/json"
	"testing"

	"github.com/guidonhq/guidon/sdk"
)

// The text of an input is what encoding/json makes of it, whichever way it is
// read.
func TestTextOfAnInput(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`"plain"`, `""`, `"é 日本"`, `"a\nb"`, `"\u00e9\\"`, `"\ud83d\ude00"`, "\"\xff\"", `"a\"b"`, `7`, `null`, `["a"]`, ``, `"`} {
		var want string
		isText := json.Unmarshal([]byte(value), &want) == nil && len(value) > 0 && value[0] == '"'
		in := sdk.Input{Value: json.RawMessage(value)}
		if got, ok := in.String(); ok != isText || isText && got != want {
			t.Errorf("%s: %q %v, want %q %v", value, got, ok, want, isText)
		}
	}
}

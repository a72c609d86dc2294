package plugins_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

// Each option of a bundled plugin whose name or text speaks of a file has the format path.
func TestBundledPathsAreMarked(t *testing.T) {
	t.Parallel()
	marked := 0
	for _, name := range plugins.Names() {
		for _, kind := range []string{"sink", "notifier", "matcher"} {
			p, _ := plugins.Find(name)
			var schema map[string]any
			if values(p)[kind] == nil {
				continue
			}
			if err := json.Unmarshal(sdk.Schema(configOf(p, kind)), &schema); err != nil {
				t.Fatal(err)
			}
			marked += checkMarks(t, name, schema)
		}
	}
	if marked < 9 {
		t.Errorf("%d options are marked", marked)
	}
}

func checkMarks(t *testing.T, name string, schema map[string]any) (marked int) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range properties {
		node, _ := value.(map[string]any)
		doc, _ := node["description"].(string)
		marked += checkMarks(t, name+"."+key, node)
		if format := node["format"]; format == "path" || format == "postgres-url" {
			marked++
			continue
		}
		local := key == "path" || strings.HasSuffix(key, "_file") || strings.HasSuffix(key, "_dir") || strings.Contains(strings.ToLower(doc), "file with") || strings.HasPrefix(doc, "Directory")
		if local && node["type"] == "string" {
			t.Errorf("%s.%s names a local file and has no format", name, key)
		}
	}
	return marked
}

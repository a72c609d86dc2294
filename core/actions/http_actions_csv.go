package actions

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/web"
)

// actionsCSV answers with one row per action. Nested values have columns named
// by their path: created_by.email, steps.0.event.
func actionsCSV(c *web.Call, views []actionView) error {
	flat := make([]map[string]string, len(views))
	columns := map[string]bool{}
	for i := range views {
		flat[i] = map[string]string{}
		var v any
		dec := json.NewDecoder(strings.NewReader(string(mustJSON(views[i]))))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return err
		}
		flatten(flat[i], "", v)
		for name := range flat[i] {
			columns[name] = true
		}
	}
	head := make([]string, 0, len(columns))
	for name := range columns {
		head = append(head, name)
	}
	sort.Slice(head, func(i, j int) bool { return columnLess(head[i], head[j]) })
	rows := make([][]string, len(flat))
	for i, cells := range flat {
		rows[i] = make([]string, len(head))
		for j, name := range head {
			rows[i][j] = cells[name]
		}
	}
	return c.CSV(head, rows)
}

// flatten sets every value in v under its path.
func flatten(to map[string]string, path string, v any) {
	under := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			flatten(to, under(name), inner)
		}
		if len(v) == 0 {
			to[path] = ""
		}
	case []any:
		for i, inner := range v {
			flatten(to, under(strconv.Itoa(i)), inner)
		}
		if len(v) == 0 {
			to[path] = ""
		}
	case nil:
		to[path] = ""
	case string:
		to[path] = v
	case json.Number:
		to[path] = v.String()
	case bool:
		to[path] = strconv.FormatBool(v)
	}
}

// firstColumns are the first columns; the others follow by name.
var firstColumns = []string{"id", "name", "description", "tags", "post_to_chat", "chat_message_format"}

// columnLess orders columns: firstColumns, then by name, numeric parts by
// value.
func columnLess(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	i, j := slices.Index(firstColumns, x[0]), slices.Index(firstColumns, y[0])
	if i != j {
		return i >= 0 && (j < 0 || i < j)
	}
	for k := range min(len(x), len(y)) {
		if x[k] == y[k] {
			continue
		}
		m, errM := strconv.Atoi(x[k])
		n, errN := strconv.Atoi(y[k])
		if errM == nil && errN == nil {
			return m < n
		}
		return x[k] < y[k]
	}
	return len(x) < len(y)
}

package actions

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/web"
)

// actionsCSV answers with one row per action. Nested values have columns named
// by their path: created_by.email, steps.0.event. A list without actions has the
// columns of an empty one.
func actionsCSV(c *web.Call, views []actionView) error {
	flat := make([]map[string]string, len(views))
	for i := range views {
		var err error
		if flat[i], err = cellsOf(&views[i]); err != nil {
			return err
		}
	}
	head, err := columnsOf(flat)
	if err != nil {
		return err
	}
	rows := make([][]string, len(flat))
	for i, cells := range flat {
		rows[i] = make([]string, len(head))
		for j, name := range head {
			rows[i][j] = cells[name]
		}
	}
	return c.CSV(head, rows)
}

// cellsOf returns the cells of an action by the names of their columns.
func cellsOf(view *actionView) (map[string]string, error) {
	dec := json.NewDecoder(strings.NewReader(string(mustJSON(view))))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	cells := map[string]string{}
	flatten(cells, "", v)
	return cells, nil
}

// columnsOf returns the columns of the rows, in their order.
func columnsOf(rows []map[string]string) ([]string, error) {
	if len(rows) == 0 {
		empty, err := cellsOf(&actionView{Tags: []string{}, ChatDestinations: []Destination{}, Steps: []stepView{}})
		if err != nil {
			return nil, err
		}
		rows = append(rows, empty)
	}
	columns := map[string]bool{}
	for _, cells := range rows {
		for name := range cells {
			columns[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(columns), compareColumns), nil
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

// compareColumns orders columns: firstColumns, then by name, numeric parts by
// value.
func compareColumns(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	if i, j := rank(x[0]), rank(y[0]); i != j {
		return i - j
	}
	for k := range min(len(x), len(y)) {
		if x[k] == y[k] {
			continue
		}
		m, errM := strconv.Atoi(x[k])
		n, errN := strconv.Atoi(y[k])
		if errM == nil && errN == nil {
			return m - n
		}
		return strings.Compare(x[k], y[k])
	}
	return len(x) - len(y)
}

// rank is the place of a column among firstColumns, or behind them.
func rank(column string) int {
	if i := slices.Index(firstColumns, column); i >= 0 {
		return i
	}
	return len(firstColumns)
}

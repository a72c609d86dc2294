package stage

import (
	"database/sql"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/persons/properties"
)

// scanner reads the columns of the current row.
type scanner = func(dest ...any) error

// eachRow calls fn for every row of a query.
func eachRow(rows *sql.Rows, err error, fn func(scanner) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (b *batchState) scanPerson(scan scanner) error {
	var r loadedPerson
	err := scan(&r.distinctID, &r.id, &r.uuid, &r.createdAt, &r.identified, &r.version, &r.properties)
	if err == nil {
		b.addLoaded(&r)
	}
	return err
}

func (b *batchState) scanPersonless(scan scanner) error {
	var id string
	err := scan(&id)
	b.personless[id] = true
	return err
}

func (g *groupState) scanType(scan scanner) error {
	var name string
	var index int
	err := scan(&name, &index)
	g.addType(name, index)
	return err
}

func (g *groupState) scanGroup(scan scanner) error {
	gr := &group{}
	if err := scan(&gr.index, &gr.key, &gr.createdAt, &gr.version, &gr.stored); err != nil {
		return err
	}
	gr.props = properties.ParseStored(gr.stored)
	if g.groups[gr.groupID] == nil {
		g.addGroup(gr)
	}
	return nil
}

// jsonList returns a JSON array of strings.
func jsonList(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, s)
	}
	return string(append(b, ']'))
}

// jsonPairs returns a JSON array of arrays of type name and key.
func jsonPairs(list []nameKey) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(append(b, '['), s.name)
		b = append(jsontext.AppendString(append(b, ','), s.key), ']')
	}
	return string(append(b, ']'))
}

package persons

import "database/sql"

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

func (b *book) scanPerson(scan scanner) error {
	var r loadedPerson
	err := scan(&r.distinctID, &r.id, &r.uuid, &r.createdAt, &r.identified, &r.version, &r.properties)
	if err == nil {
		b.knows(&r)
	}
	return err
}

func (b *book) scanLoner(scan scanner) error {
	var id string
	err := scan(&id)
	b.alone[id] = true
	return err
}

func (g *groupBook) scanType(scan scanner) error {
	var name string
	var index int
	err := scan(&name, &index)
	if g.types == nil {
		g.types = map[string]int{}
	}
	g.types[name] = index
	return err
}

func (g *groupBook) scanGroup(scan scanner) error {
	gr := &group{}
	if err := scan(&gr.index, &gr.key, &gr.createdAt, &gr.version, &gr.stored); err != nil {
		return err
	}
	gr.props = parseStored(gr.stored)
	if g.groups == nil {
		g.groups = map[groupID]*group{}
	}
	if g.groups[gr.groupID] == nil {
		g.groups[gr.groupID] = gr
		g.list = append(g.list, gr)
	}
	return nil
}

// jsonList is a JSON array of strings.
func jsonList(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, s)
	}
	return string(append(b, ']'))
}

// jsonPairs is a JSON array of arrays of type name and key.
func jsonPairs(list []nameKey) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(b, '['), s.name)
		b = append(appendQuoted(append(b, ','), s.key), ']')
	}
	return string(append(b, ']'))
}

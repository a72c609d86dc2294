package sqlite

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"sync/atomic"

	sqlitedriver "modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/db/rowcodec"
)

// init registers the functions that read compressed properties of events; migrations and
// searches call them. See core/db/rowcodec.
//
//	event_dictionary_id(properties) is the id of the dictionary of a row, NULL for text
//	event_properties(properties, dictionary, distinct_id, current_url) is the text
func init() {
	sqlitedriver.MustRegisterDeterministicScalarFunction("event_dictionary_id", 1, dictionaryIDFunction)
	sqlitedriver.MustRegisterDeterministicScalarFunction("event_properties", 4, propertiesFunction)
}

func dictionaryIDFunction(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
	stored := bytesOf(args[0])
	if !rowcodec.IsCompressed(stored) {
		return nil, nil
	}
	id, err := rowcodec.DictionaryOf(stored)
	if err != nil {
		return nil, nil //nolint:nilerr // event_properties returns the error
	}
	return id, nil
}

// last is the dictionary of the last call: consecutive rows mostly have the same.
var last atomic.Pointer[loadedDictionary]

type loadedDictionary struct {
	content []byte
	*rowcodec.Dictionary
}

func propertiesFunction(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
	stored := bytesOf(args[0])
	if !rowcodec.IsCompressed(stored) {
		return args[0], nil
	}
	id, err := rowcodec.DictionaryOf(stored)
	if err != nil {
		return nil, err
	}
	content := bytesOf(args[1])
	if len(content) == 0 {
		return nil, fmt.Errorf("%w: dictionary %d is missing", rowcodec.ErrDamaged, id)
	}
	d := last.Load()
	if d == nil || d.ID() != id || !bytes.Equal(d.content, content) {
		loaded, err := rowcodec.NewDictionary(id, content)
		if err != nil {
			return nil, fmt.Errorf("dictionary %d: %w", id, err)
		}
		d = &loadedDictionary{bytes.Clone(content), loaded}
		last.Store(d)
	}
	plain, err := d.Decode(nil, stored, rowcodec.Columns{DistinctID: bytesOf(args[2]), URL: bytesOf(args[3])}, &rowcodec.Buffer{})
	if err != nil {
		return nil, err
	}
	return string(plain), nil
}

func bytesOf(v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

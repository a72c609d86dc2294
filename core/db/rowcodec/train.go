package rowcodec

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// Sample is a row that a dictionary is made from.
type Sample struct {
	Plain   []byte
	Columns Columns
	Person  string // whose row it is; empty: the person of the distinct id
}

const (
	// MinPersons is how many persons of the samples must have a text in common
	// before a dictionary holds it.
	MinPersons = 10
	// MaxDictionary is the size of the largest dictionary in bytes. A larger one saves
	// about a hundredth of a row and costs the cache of the processor.
	MaxDictionary = 8 << 10
	// minDictionary is the size below which a dictionary does not pay.
	minDictionary = 64
)

// Clients choose the samples: these limits bound the memory that Train takes to about
// 100 MiB.
const (
	// MaxSample is the length of the longest properties that Train uses, in bytes.
	MaxSample = 16 << 10
	// maxSamples is how many bytes of properties Train uses, those of the first samples.
	maxSamples = 4 << 20
	// maxTexts is how many different texts are counted.
	maxTexts = 1 << 17
	// maxText is the length of the longest text that is counted, in bytes.
	maxText = 1 << 10
	// maxDirectories is how many directories of a path are told apart.
	maxDirectories = 8
)

// Train returns the bytes of a dictionary for rows like the samples, nil if these have
// too little in common. The dictionary holds only names and values of properties that
// samples of at least MinPersons persons have. It leaves out samples that are longer
// than MaxSample, and all others once it has 4 MiB of them.
func Train(samples []Sample) []byte {
	samples = limitSamples(samples)
	t := trainer{persons: map[string]*personSet{}}
	for _, s := range samples {
		t.count(s)
	}
	for _, s := range samples {
		t.addRow(s)
	}
	text := t.text()
	if len(text) < minDictionary {
		return nil
	}
	// The first offset that S2 tries is the start of the dictionary.
	return append(binary.AppendUvarint(nil, 0), text...)
}

// limitSamples returns the samples that Train uses.
func limitSamples(samples []Sample) (out []Sample) {
	size := 0
	for _, s := range samples {
		if len(s.Plain) > MaxSample {
			continue
		}
		if size += len(s.Plain); size > maxSamples {
			break
		}
		out = append(out, s)
	}
	return out
}

// trainer counts the parts of rows. A part ends with a comma or an opening bracket
// outside of strings: a property with its value, or with the start of an object.
type trainer struct {
	persons map[string]*personSet
	rows    map[string]*commonRow
}

// commonRow has the common parts of a row.
type commonRow struct {
	parts []string
	rows  int // how many rows have these
}

// personSet is up to MinPersons persons.
type personSet struct {
	ids [MinPersons]uint64
	n   int
}

var personSeed = maphash.MakeSeed()

func (p *personSet) add(id uint64) {
	if p.n < MinPersons && !slices.Contains(p.ids[:p.n], id) {
		p.ids[p.n] = id
		p.n++
	}
}

func (t *trainer) count(s Sample) {
	person := maphash.Bytes(personSeed, s.Columns.DistinctID)
	if s.Person != "" {
		person = maphash.String(personSeed, s.Person)
	}
	eachPart(s, func(part []byte) {
		t.mark(part, person)
		for begin := beginOf(part); len(begin) > 0; begin = shorter(begin) {
			t.mark(begin, person)
		}
	})
}

func (t *trainer) mark(text []byte, person uint64) {
	set := t.persons[string(text)]
	if set == nil {
		if len(text) > maxText || len(t.persons) == maxTexts {
			return
		}
		set = &personSet{}
		t.persons[string(text)] = set
	}
	set.add(person)
}

func (t *trainer) isCommon(text []byte) bool {
	set := t.persons[string(text)]
	return set != nil && set.n == MinPersons
}

func (t *trainer) addRow(s Sample) {
	var parts []string
	var all []byte
	eachPart(s, func(part []byte) {
		text := string(part)
		if !t.isCommon(part) {
			begin := beginOf(part)
			for len(begin) > 0 && !t.isCommon(begin) {
				begin = shorter(begin)
			}
			if len(begin) == 0 {
				return
			}
			text = string(begin) + endOf(part)
		}
		parts = append(parts, text)
		all = append(all, text...)
	})
	if t.rows == nil {
		t.rows = map[string]*commonRow{}
	}
	r := t.rows[string(all)]
	if r == nil {
		r = &commonRow{parts: parts}
		t.rows[string(all)] = r
	}
	r.rows++
}

// text joins the parts: those of the most frequent rows are the last ones. Of rarer
// rows only the parts are taken that others do not have.
func (t *trainer) text() []byte {
	type namedRow struct {
		*commonRow
		all string
	}
	var list []namedRow
	for all, r := range t.rows {
		list = append(list, namedRow{r, all})
	}
	slices.SortFunc(list, func(a, b namedRow) int {
		if a.rows != b.rows {
			return b.rows - a.rows
		}
		return bytes.Compare([]byte(a.all), []byte(b.all))
	})
	seen := map[string]bool{}
	var pieces [][]byte
	size := 0
	for _, r := range list {
		var piece []byte
		for _, part := range r.parts {
			if !seen[part] && size+len(piece)+len(part) <= MaxDictionary {
				seen[part] = true
				piece = append(piece, part...)
			}
		}
		size += len(piece)
		pieces = append(pieces, piece)
	}
	slices.Reverse(pieces)
	return bytes.Join(pieces, nil)
}

// eachPart calls fn for the parts of a row, whose identifiers are replaced. The memory
// is valid until fn returns.
func eachPart(s Sample, fn func([]byte)) {
	text, ok := appendReplaced(nil, s.Plain, s.Columns)
	if !ok {
		return
	}
	start, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == markUUID:
			i += uuidSize
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case !inString && (b == ',' || b == '{' || b == '['):
			fn(text[start : i+1])
			start = i + 1
		}
	}
	if start < len(text) {
		fn(text[start:])
	}
}

// beginOf returns the name of a property in a part, with the first directories of its
// value if that is a string, nil if it has none.
func beginOf(part []byte) []byte {
	i := valueIndex(part)
	if i < 0 || i >= len(part) || part[i] != '"' {
		return part[:max(i, 0)]
	}
	if i++; i < len(part) && part[i] <= lastMark {
		return part[:i+1]
	}
	return part[:i+directoriesLen(part[i:])]
}

// directoriesLen returns the length of the first directories of a path.
func directoriesLen(path []byte) (n int) {
	for range maxDirectories {
		slash := bytes.IndexByte(path[n:], '/')
		if slash < 0 || n+slash+1 > maxText {
			break
		}
		n += slash + 1
	}
	return n
}

// shorter returns what beginOf returned without its last directory, then only the name,
// and then nil.
func shorter(begin []byte) []byte {
	i := valueIndex(begin) + 1
	if i >= len(begin) {
		return nil
	}
	if slash := bytes.LastIndexByte(begin[i:len(begin)-1], '/'); slash >= 0 {
		return begin[:i+slash+1]
	}
	return begin[:i]
}

// valueIndex returns where the value of a part begins, -1 if it has no name.
func valueIndex(part []byte) int {
	i := bytes.Index(part, []byte(`":`))
	if i < 0 {
		return -1
	}
	for i += 2; i < len(part) && part[i] == ' '; i++ {
	}
	return i
}

// endOf returns what follows the value of a part, so that the next name of the
// dictionary follows what it follows in a row.
func endOf(part []byte) string {
	n := len(part)
	if n > 1 && part[n-2] == '"' {
		return string(part[n-2:])
	}
	return string(part[n-1:])
}

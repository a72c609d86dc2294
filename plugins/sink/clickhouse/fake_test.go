package clickhouse_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// fake speaks as much of ClickHouse's HTTP interface as the sink does. It has
// one table.
type fake struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	columns []string
	asked   []string
	kept    []row
	say     func(http.ResponseWriter) // instead of an answer of its own
}

type row struct {
	project                       int64
	uuid, event, distinctID       string
	timestamp, received           uint32
	us, receivedUs                int64
	properties, url, chain, owner string
	names, values                 []string
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("X-ClickHouse-Key") != "hush" || r.URL.Query().Get("wait_end_of_query") != "1" || r.URL.Query().Has("password") {
		f.t.Errorf("%s %v", r.URL, r.Header)
	}
	statement := r.URL.Query().Get("query")
	if statement == "" {
		statement, body = string(body), nil
	}
	f.asked = append(f.asked, statement)
	if f.say != nil {
		f.say(w)
		return
	}
	switch {
	case strings.HasPrefix(statement, "SELECT name FROM system.columns"):
		for _, name := range f.columns {
			line, _ := json.Marshal(map[string]string{"name": name})
			fmt.Fprintf(w, "%s\n", line)
		}
	case strings.HasPrefix(statement, "CREATE TABLE"):
		if len(f.columns) > 0 {
			return // it is there
		}
		_, list, _ := strings.Cut(statement, " (")
		list, _, _ = strings.Cut(list, ") ENGINE")
		for c := range strings.SplitSeq(list, ", ") {
			name, _, _ := strings.Cut(c, " ")
			f.columns = append(f.columns, name)
		}
	case strings.HasPrefix(statement, "ALTER TABLE"):
		_, c, _ := strings.Cut(statement, "ADD COLUMN ")
		name, _, _ := strings.Cut(c, " ")
		f.columns = append(f.columns, name)
	case strings.HasPrefix(statement, "INSERT INTO"):
		f.insert(statement, body)
	default:
		f.t.Errorf("a statement nobody expected: %s", statement)
	}
}

func (f *fake) insert(statement string, body []byte) {
	want := "(project_id, uuid, event, distinct_id, timestamp, timestamp_us, received_at, received_at_us, properties, property_names, property_values, current_url, elements_chain, person_id) FORMAT RowBinary"
	if !strings.HasSuffix(statement, want) {
		f.t.Errorf("%s", statement)
	}
	for r := (&reader{rest: body}); len(r.rest) > 0; {
		f.kept = append(f.kept, row{
			project: int64(r.u64()), uuid: r.uuid(), event: r.text(), distinctID: r.text(),
			timestamp: r.u32(), us: int64(r.u64()), received: r.u32(), receivedUs: int64(r.u64()),
			properties: r.text(), names: r.texts(), values: r.texts(), url: r.text(), chain: r.text(), owner: r.text(),
		})
		if r.err != nil {
			f.t.Errorf("the rows cannot be read: %v", r.err)
			return
		}
	}
}

func (f *fake) answer(say func(http.ResponseWriter)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say = say
}

func (f *fake) rows() []row {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]row(nil), f.kept...)
}

// statements lists those that begin so.
func (f *fake) statements(prefix string) (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.asked {
		if strings.HasPrefix(s, prefix) {
			out = append(out, s)
		}
	}
	return out
}

func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

func (f *fake) drop(column string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var left []string
	for _, name := range f.columns {
		if name != column {
			left = append(left, name)
		}
	}
	f.columns = left
}

// reader reads RowBinary.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.err, r.rest = errors.New("it ends too early"), nil
		return make([]byte, max(0, min(n, 16)))
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) uuid() string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], r.u64())
	binary.BigEndian.PutUint64(id[8:], r.u64())
	return id.String()
}

func (r *reader) length() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.err = errors.New("no length")
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) text() string { return string(r.take(r.length())) }

func (r *reader) texts() []string {
	var out []string
	for n := r.length(); n > 0 && r.err == nil; n-- {
		out = append(out, r.text())
	}
	return out
}

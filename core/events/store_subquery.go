package events

import (
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
)

// subquery is the part of a history query that one statement answers: the clauses
// about one event name, or all clauses if one of them matches every name.
type subquery struct {
	postgres bool
	event    string
	anyEvent bool
	clauses  []HistoryClause
}

// splitQuery splits a query so that no event is in two subqueries and each can be
// answered from the index of event names.
func (s historyStore) splitQuery(a *HistoryQuery) []subquery {
	var out []subquery
	place := map[string]int{}
	for _, c := range a.Any {
		if c.AnyEvent {
			return []subquery{{postgres: s.db.Postgres(), anyEvent: true, clauses: a.Any}}
		}
		i, seen := place[c.Event]
		if !seen {
			i = len(out)
			place[c.Event] = i
			out = append(out, subquery{postgres: s.db.Postgres(), event: c.Event})
		}
		out[i].clauses = append(out[i].clauses, c)
	}
	return out
}

// condition is an SQL expression with its arguments.
type condition struct {
	sql  string
	args []any
}

func (c *condition) add(sql string, args ...any) {
	c.sql += sql
	c.args = append(c.args, args...)
}

// ambiguousLength is the length from which a URL may be truncated: a character has
// up to four bytes and is never split.
const ambiguousLength = URLMax - 3

const mayBeTruncated = "octet_length(e.current_url) >= ?"

// matchCondition is true for events of the subquery that certainly fit. It may be
// NULL.
func (p *subquery) matchCondition() (out condition) {
	out.sql = "("
	for i, c := range p.clauses {
		if i > 0 {
			out.add(" OR ")
		}
		p.addClause(&out, &c)
	}
	out.sql += ")"
	return out
}

// certain is matchCondition without NULL.
func (p *subquery) certain() condition {
	c := p.matchCondition()
	c.sql = "coalesce(" + c.sql + ", FALSE)"
	return c
}

func (p *subquery) addClause(out *condition, c *HistoryClause) {
	out.add("(TRUE")
	if p.anyEvent && !c.AnyEvent {
		out.add(" AND e.event = ?", c.Event)
	}
	switch c.URLMatching {
	case URLEquals:
		if len(c.URL) < ambiguousLength {
			out.add(" AND e.current_url = ?", c.URL)
		} else {
			out.add(" AND FALSE") // every URL of that length is ambiguous
		}
	case URLContains:
		if p.postgres {
			out.add(" AND e.current_url LIKE ? ESCAPE '!'", likePattern(c.URL, "%", "_", escapeLike))
		} else {
			out.add(" AND e.current_url GLOB ?", likePattern(c.URL, "*", "?", escapeGlob))
		}
	default:
	}
	out.add(")")
}

// checksURL reports whether any clause compares the URL.
func (p *subquery) checksURL() bool {
	for i := range p.clauses {
		if p.clauses[i].URLMatching != URLAny {
			return true
		}
	}
	return false
}

// selectEvents selects the events of the subquery that fit or are ambiguous; with
// Ambiguous only the latter.
func (p *subquery) selectEvents(d bun.IDB, a *HistoryQuery) *bun.SelectQuery {
	q := d.NewSelect().TableExpr(p.table(a)).Where("e.project_id = ?", a.ProjectID)
	if !p.anyEvent {
		q = q.Where("e.event = ?", p.event)
	}
	if !a.From.IsZero() {
		q = q.Where("e.timestamp >= ?", a.From.UnixMicro())
	}
	if !a.To.IsZero() {
		q = q.Where("e.timestamp < ?", a.To.UnixMicro())
	}
	if a.After > 0 {
		q = q.Where("e.id > ?", a.After)
	}
	if a.Through > 0 {
		q = q.Where("e.id <= ?", a.Through)
	}
	match := p.matchCondition()
	switch {
	case a.Ambiguous && !p.checksURL():
		return q.Where("FALSE")
	case a.Ambiguous:
		return q.Where(mayBeTruncated, ambiguousLength).Where("NOT coalesce("+match.sql+", FALSE)", match.args...)
	case p.checksURL():
		match.add(" OR "+mayBeTruncated, ambiguousLength)
	}
	return q.Where(match.sql, match.args...)
}

// table is the table with the index that suits the query. Without statistics
// SQLite would read the index of names even where a few new rows are selected.
func (p *subquery) table(a *HistoryQuery) string {
	switch {
	case p.postgres:
		return "events AS e"
	case a.After > 0:
		return "events AS e NOT INDEXED" // by row
	case p.anyEvent:
		return "events AS e INDEXED BY events_newest"
	}
	return "events AS e INDEXED BY events_by_name"
}

// likePattern converts the text of a URLContains clause to a pattern of the
// dialect: anyRun matches any run of characters, anyChar a single one.
func likePattern(text, anyRun, anyChar string, escape func(*strings.Builder, rune)) string {
	var b strings.Builder
	b.WriteString(anyRun)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r == '%':
			b.WriteString(anyRun)
		case r == '_':
			b.WriteString(anyChar)
		case r == '\\' && i < len(text) && strings.IndexByte(`%_\`, text[i]) >= 0:
			escape(&b, rune(text[i]))
			i++
		default:
			escape(&b, r)
		}
	}
	b.WriteString(anyRun)
	return b.String()
}

func escapeLike(b *strings.Builder, r rune) {
	if r == '%' || r == '_' || r == '!' {
		b.WriteByte('!')
	}
	b.WriteRune(r)
}

func escapeGlob(b *strings.Builder, r rune) {
	if r == '*' || r == '?' || r == '[' {
		b.WriteByte('[')
		b.WriteRune(r)
		b.WriteByte(']')
		return
	}
	b.WriteRune(r)
}

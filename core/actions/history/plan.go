package history

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// plan is how the events of a definition are read from the event store.
type plan struct {
	matcher *actionmatch.Matcher
	clauses []events.HistoryClause
	// exact reports whether the clauses express the whole definition. Otherwise
	// the matcher decides about every event that passes them.
	exact bool
	// without are the columns that the matcher does not read.
	without events.HistoryColumns
	// readsPerson reports whether the matcher reads properties of the person:
	// those of personNames.
	readsPerson bool
	personNames []string
	// readsCohorts reports whether the matcher reads cohorts.
	readsCohorts bool
	// usesPlugins reports whether the definition has plugin operators.
	usesPlugins bool
	// timeDependent reports whether the result can change without a new event.
	timeDependent bool
	fingerprint   string
}

// newPlan compiles steps leniently.
func newPlan(steps []actionmatch.Step, loc *time.Location, operators match.Registry) (*plan, error) {
	m, err := actionmatch.Compile(steps, actionmatch.CompileOptions{Location: loc, Operators: operators, Lenient: true})
	if err != nil {
		return nil, err
	}
	needs := m.Needs()
	p := &plan{
		matcher: m, exact: true, without: unread(&needs), readsPerson: len(needs.Person) > 0, personNames: needs.Person,
		readsCohorts: len(needs.Cohorts) > 0, usesPlugins: len(needs.Operators) > 0, timeDependent: needs.NeedsLookup(),
	}
	for _, s := range m.Steps() {
		p.add(&s)
	}
	p.fingerprint, err = fingerprint(steps, loc, m.Problem())
	return p, err
}

// unread returns the columns that a definition does not read. The key of a group is
// in the properties.
func unread(n *actionmatch.Needs) events.HistoryColumns {
	columns := events.IdentityColumns
	if !n.Elements {
		columns |= events.ElementsColumn
	}
	if len(n.Event)+len(n.Groups) == 0 {
		columns |= events.PropertiesColumn
	}
	return columns
}

// add adds the clause of a step, as far as the store can evaluate it.
func (p *plan) add(s *actionmatch.StepConditions) {
	c := events.HistoryClause{Event: s.Event, AnyEvent: s.Event == ""}
	switch {
	case s.URL == "":
	case s.URLMatching == match.Regex || !isStorable(s.URL):
		p.exact = false
	case s.URLMatching == match.Contains:
		c.URL, c.URLMatching = s.URL, events.URLContains
	default:
		c.URL, c.URLMatching = s.URL, events.URLEquals
	}
	if !isStorable(s.Event) || s.HasElements() || len(s.Filters) > 0 {
		p.exact = false
	}
	for i := range s.Filters {
		if strings.HasPrefix(s.Filters[i].Operator, "is_date_") {
			p.timeDependent = true // "-7d" moves every day
		}
	}
	if !isStorable(s.Event) {
		c.Event, c.AnyEvent = "", true
	}
	p.clauses = append(p.clauses, c)
}

// isStorable reports whether a column holds the text unchanged; some texts are
// replaced when they are stored.
func isStorable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\uFFFD")
}

// neverMatches reports that no event can match.
func (p *plan) neverMatches() bool { return len(p.clauses) == 0 }

// problem is why the definition is invalid, or "".
func (p *plan) problem() string {
	f := fault.From(p.matcher.Problem())
	switch {
	case p.matcher.Problem() == nil:
		return ""
	case f == nil:
		return p.matcher.Problem().Error()
	case f.Attr == "":
		return f.Detail
	}
	return f.Attr + ": " + f.Detail
}

// fingerprintVersion changes when the same definition matches other events
// than before, so that all counts start again.
const fingerprintVersion = 1

// fingerprint is equal for definitions that match the same events.
func fingerprint(steps []actionmatch.Step, loc *time.Location, problem error) (string, error) {
	plain := make([]actionmatch.Step, len(steps))
	for i, s := range steps {
		s.ID, s.Name, s.Null = "", "", nil
		plain[i] = s
	}
	zone := ""
	if loc != nil {
		zone = loc.String()
	}
	wrong := ""
	if problem != nil {
		wrong = problem.Error() // changes when an operator is added or removed
	}
	raw, err := json.Marshal([]any{fingerprintVersion, zone, wrong, plain})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

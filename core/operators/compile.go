package operators

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// value is a compiled filter value as the outcomes know it: what one opening of
// a plugin said does not bind the next.
type value struct {
	program match.Program
	plugin  *plugin
	epoch   uint64
}

// outcome is what a plugin said of a value.
type outcome struct {
	reads   []string
	problem error
	open    bool // it could not be asked
}

// maxOutcomes is how many values are remembered; one that is forgotten is
// compiled again.
const maxOutcomes = 50_000

func newOutcomes() (*otter.Cache[value, outcome], error) {
	return otter.New(&otter.Options[value, outcome]{MaximumSize: maxOutcomes})
}

var _ match.Registry = (*Operators)(nil)

// Operator returns an operator for filters that are stored already: a value that
// its plugin cannot check now makes a filter that nobody can decide, until
// OnChange tells that it may be compiled again.
func (o *Operators) Operator(id string) (match.ExternalOperator, bool) {
	return o.external(id, o.load)
}

// Saving returns the same operators for filters that somebody is about to save:
// the plugin is waited for. When it cannot be asked, what it says of itself must
// do, so that flags can be changed while a plugin is away.
func (o *Operators) Saving() match.Registry { return saving{o} }

type saving struct{ *Operators }

func (s saving) Operator(id string) (match.ExternalOperator, bool) { return s.external(id, s.save) }

func (o *Operators) external(id string, compile func(*offer, Program) outcome) (match.ExternalOperator, bool) {
	f := o.find(id)
	if f == nil {
		return match.ExternalOperator{}, false
	}
	out := match.ExternalOperator{Source: f.plugin.name, Missing: missing(f.Missing), Equivalent: f.CEL}
	out.Compile = func(text []byte) (match.Compiled, error) {
		if len(text) == 0 {
			text = []byte("null")
		}
		p, err := f.plugin.asked().Program(f.Operator, text)
		if err != nil {
			return match.Compiled{}, invalid("must be valid JSON")
		}
		made := match.Compiled{Program: named(p)}
		said := compile(f, p)
		made.Reads, made.Open = said.reads, said.open
		return made, said.problem
	}
	return out, true
}

func missing(m sdk.Missing) match.Result {
	switch m {
	case sdk.MissingNoMatch:
		return match.False
	case sdk.MissingMatches:
		return match.True
	default:
		return match.Unknown
	}
}

// named is a program as matches know it: its id, its operator and its value.
func named(p Program) match.Program {
	return match.Program(string(p.ID[:]) + p.Operator + "\x00" + string(p.Value))
}

const idBytes = len(Program{}.ID)

// operatorOf is the operator of a program as matches know it.
func operatorOf(m match.Program) string {
	if len(m) < idBytes {
		return ""
	}
	operator, _, _ := strings.Cut(string(m[idBytes:]), "\x00")
	return operator
}

// valueOf is its value.
func valueOf(m match.Program) string {
	_, text, _ := strings.Cut(string(m[idBytes:]), "\x00")
	return text
}

// loadTimeout bounds how long loading waits for one value. Loads come in
// hundreds; after one that failed the others do not even try for a while.
const loadTimeout = 250 * time.Millisecond

// load compiles a value that is stored.
func (o *Operators) load(f *offer, p Program) outcome {
	said, ok := o.outcomes.GetIfPresent(o.key(f, p))
	if ok {
		return said
	}
	if f.stated && f.plugin.asked().Available() && !f.plugin.pause.on() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		if said, err := o.compile(ctx, f, p); err == nil {
			if said.problem != nil {
				o.log.Warn("a plugin refuses the value of a stored filter, which nobody can decide", zap.String("plugin", f.plugin.name),
					zap.String("operator", f.ID), zap.ByteString("value", p.Value[:min(len(p.Value), 200)]), zap.Error(said.problem))
			}
			return said
		}
	}
	o.waiting.Store(true)
	return outcome{open: true}
}

// save compiles a value that somebody is about to save.
func (o *Operators) save(f *offer, p Program) outcome {
	if said, ok := o.outcomes.GetIfPresent(o.key(f, p)); ok {
		return said
	}
	if !f.plugin.pause.on() {
		ctx, cancel := context.WithTimeout(context.Background(), o.cfg.CompileTimeout)
		defer cancel()
		if f.plugin.asked().Ready(ctx) == nil {
			if !f.stated { // it has come up just now: what it says counts from here on
				o.look()
			}
			if said, err := o.compile(ctx, f, p); err == nil {
				return said
			}
		} else {
			f.plugin.pause.begin()
		}
	}
	return outcome{problem: conforms(f.ValueSchema, p.Value), open: true}
}

func (o *Operators) key(f *offer, p Program) value {
	return value{program: named(p), plugin: f.plugin, epoch: f.plugin.epoch.Load()}
}

// compile asks the plugin and remembers what it says.
func (o *Operators) compile(ctx context.Context, f *offer, p Program) (outcome, error) {
	key := o.key(f, p)
	said, err := f.plugin.asked().Compile(ctx, p)
	if err != nil {
		f.plugin.pause.begin()
		o.log.Warn("a plugin could not check the value of a filter", zap.String("plugin", f.plugin.name),
			zap.String("operator", f.ID), zap.Error(err))
		return outcome{}, err
	}
	out := outcome{reads: said.Reads}
	if !said.OK {
		out = outcome{problem: invalid(told(said.Problems))}
	}
	o.outcomes.Set(key, out)
	return out, nil
}

// told is what a plugin has against a value, in one line.
func told(problems []Problem) string {
	var parts []string
	for _, p := range problems {
		if p.Pointer != "" {
			p.Summary = fmt.Sprintf("at %s: %s", p.Pointer, p.Summary)
		}
		parts = append(parts, p.Summary)
	}
	if len(parts) == 0 {
		return "cannot be used"
	}
	return strings.Join(parts, "; ")
}

func invalid(text string) error { return fault.Field("value", "invalid_value", text) }

// pause keeps callers from a plugin that could not be asked a moment ago.
type pause struct{ until atomic.Int64 }

const pauseFor = time.Second

func (p *pause) on() bool { return time.Now().UnixNano() < p.until.Load() }

func (p *pause) begin() { p.until.Store(time.Now().Add(pauseFor).UnixNano()) }

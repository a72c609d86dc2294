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
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// compileKey identifies a compiled filter value. The result of one opening of a plugin
// does not hold for the next.
type compileKey struct {
	program match.Program
	plugin  *plugin
	epoch   uint64
}

// compileResult is the result of a plugin's check of a value.
type compileResult struct {
	reads   []string
	problem error
	open    bool // the plugin could not be called
}

// maxCompiled is the number of cached results; an evicted value is compiled again.
const maxCompiled = 50_000

func newCompileCache() (*otter.Cache[compileKey, compileResult], error) {
	return otter.New(&otter.Options[compileKey, compileResult]{MaximumSize: maxCompiled})
}

var _ match.Registry = (*Operators)(nil)

// Operator returns an operator for stored filters. A value that its plugin cannot check
// now makes a filter with unknown results, until OnChange reports that it may be
// compiled again.
func (o *Operators) Operator(id string) (match.ExternalOperator, bool) {
	return o.external(id, o.compileStored)
}

// ForSave returns the same operators for filters that are about to be saved: it waits
// for the plugin. When the plugin cannot be called, the operator's schema decides, so
// that flags can be changed while a plugin is away.
func (o *Operators) ForSave() match.Registry { return forSave{o} }

type forSave struct{ *Operators }

func (s forSave) Operator(id string) (match.ExternalOperator, bool) {
	return s.external(id, s.compileForSave)
}

func (o *Operators) external(id string, compile func(*indexedOperator, wire.MatchProgram) compileResult) (match.ExternalOperator, bool) {
	op := o.lookUp(id)
	if op == nil {
		return match.ExternalOperator{}, false
	}
	out := match.ExternalOperator{Source: op.plugin.name, Missing: missingResult(op.Missing), Equivalent: op.CEL}
	out.Compile = func(value []byte) (match.Compiled, error) {
		if len(value) == 0 {
			value = []byte("null")
		}
		p, err := wire.NewMatchProgram(op.Operator, value)
		if err != nil {
			return match.Compiled{}, invalidValue("must be valid JSON")
		}
		result := compile(op, p)
		return match.Compiled{Program: programID(p), Reads: result.reads, Open: result.open}, result.problem
	}
	return out, true
}

func missingResult(m sdk.Missing) match.Result {
	switch m {
	case sdk.MissingNoMatch:
		return match.False
	case sdk.MissingMatches:
		return match.True
	default:
		return match.Unknown
	}
}

// programID returns a program in the form of the match package: id, operator and value.
func programID(p wire.MatchProgram) match.Program {
	return match.Program(string(p.ID[:]) + p.Operator + "\x00" + string(p.Value))
}

const idBytes = len(wire.MatchProgram{}.ID)

// operatorOf returns the operator of a program, "" for an invalid one.
func operatorOf(m match.Program) string {
	if len(m) < idBytes {
		return ""
	}
	operator, _, _ := strings.Cut(string(m[idBytes:]), "\x00")
	return operator
}

// valueOf returns the value of a program.
func valueOf(m match.Program) string {
	_, value, _ := strings.Cut(string(m[idBytes:]), "\x00")
	return value
}

// loadTimeout limits the check of one stored value. Values are loaded by the hundred;
// after a failed check the others are not tried for a while.
const loadTimeout = 250 * time.Millisecond

// compileStored compiles the value of a stored filter.
func (o *Operators) compileStored(op *indexedOperator, p wire.MatchProgram) compileResult {
	if result, ok := o.compiled.GetIfPresent(o.compileKey(op, p)); ok {
		return result
	}
	if op.reported && op.plugin.current().Available() && !op.plugin.cooldown.active() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		if result, err := o.compile(ctx, op, p); err == nil {
			if result.problem != nil {
				o.log.Warn("plugin rejected the value of a stored filter", zap.String("plugin", op.plugin.name),
					zap.String("operator", op.ID), zap.ByteString("value", p.Value[:min(len(p.Value), 200)]), zap.Error(result.problem))
			}
			return result
		}
	}
	o.uncompiled.Store(true)
	return compileResult{open: true}
}

// compileForSave compiles the value of a filter that is about to be saved.
func (o *Operators) compileForSave(op *indexedOperator, p wire.MatchProgram) compileResult {
	if result, ok := o.compiled.GetIfPresent(o.compileKey(op, p)); ok {
		return result
	}
	if !op.plugin.cooldown.active() {
		ctx, cancel := context.WithTimeout(context.Background(), o.cfg.CompileTimeout)
		defer cancel()
		if op.plugin.current().Ready(ctx) == nil {
			if !op.reported { // the plugin has just started: count this opening
				o.refreshIndex()
			}
			if result, err := o.compile(ctx, op, p); err == nil {
				return result
			}
		} else {
			op.plugin.cooldown.start()
		}
	}
	return compileResult{problem: checkSchema(op.ValueSchema, p.Value), open: true}
}

func (o *Operators) compileKey(op *indexedOperator, p wire.MatchProgram) compileKey {
	return compileKey{program: programID(p), plugin: op.plugin, epoch: op.plugin.epoch.Load()}
}

// compile calls the plugin and caches the result.
func (o *Operators) compile(ctx context.Context, op *indexedOperator, p wire.MatchProgram) (compileResult, error) {
	key := o.compileKey(op, p)
	results, err := op.plugin.current().Compile(ctx, []wire.MatchProgram{p})
	if err != nil {
		op.plugin.cooldown.start()
		o.log.Warn("plugin could not check a filter value", zap.String("plugin", op.plugin.name),
			zap.String("operator", op.ID), zap.Error(err))
		return compileResult{}, err
	}
	out := compileResult{reads: results[0].Reads}
	if !results[0].OK {
		out = compileResult{problem: invalidValue(problemText(results[0].Problems))}
	}
	o.compiled.Set(key, out)
	return out, nil
}

// problemText joins the problems of a value in one line.
func problemText(problems []wire.Diagnostic) string {
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

func invalidValue(problem string) error { return fault.Field("value", "invalid_value", problem) }

// cooldown suppresses calls of a plugin shortly after a failed one.
type cooldown struct{ until atomic.Int64 }

const cooldownTime = time.Second

func (c *cooldown) active() bool { return time.Now().UnixNano() < c.until.Load() }

func (c *cooldown) start() { c.until.Store(time.Now().Add(cooldownTime).UnixNano()) }

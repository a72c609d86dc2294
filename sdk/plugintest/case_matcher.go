package plugintest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

var validOperator = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$`)

// matcherCases are the promises of a matcher.
var matcherCases = group{"matcher", []oneCase{
	{"opens", func(c *check) { c.operators() }},
	{"declares numbers that can be meant", matcherNumbersCase},
	{"describes its operators", func(c *check) {
		for _, op := range c.operators() {
			if !validOperator.MatchString(op.GetId()) {
				c.fail("the operator %q is not lower case with one slash", op.GetId())
			}
			if len(op.GetValueSchema()) > 0 {
				c.valueSchema(op)
			}
			if len(op.GetExamples()) == 0 && op.GetPurity() != matchv1.Operator_PURITY_DATA { // results depend on data
				c.fail("%s has no example", op.GetId())
			}
		}
	}},
	{"judges its examples as it says", func(c *check) {
		for _, op := range c.operators() {
			for i, e := range op.GetExamples() {
				got := c.match([]*matchv1.Program{program(op, e.GetValueJson())}, [][]byte{e.GetPropertyJson()}, []uint32{0}, []uint32{0}, e.GetNowUs())
				if got[0] != byte(e.GetResult()) {
					c.fail("example %d of %s (%s, %s) is %s, want %s", i+1, op.GetId(), e.GetValueJson(), e.GetPropertyJson(),
						matchv1.Verdict(got[0]), e.GetResult())
				}
			}
		}
	}},
	{"compiles the values of its examples", func(c *check) {
		for _, op := range c.operators() {
			for _, e := range op.GetExamples() {
				if out := c.compile(program(op, e.GetValueJson())); !out.GetCompiled() {
					c.fail("%s does not take %s of its own example: %s", op.GetId(), e.GetValueJson(), diagnostics(out.GetDiagnostics()))
				}
			}
		}
	}},
	{"refuses values that break its schema", func(c *check) {
		judged := false
		for _, op := range c.operators() {
			if len(op.GetValueSchema()) == 0 {
				continue
			}
			schema := c.valueSchema(op)
			for _, value := range []string{`null`, `{}`, `[]`, `1`, `true`, `""`, `{"no such":[]}`, `[[]]`} {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
				c.no(err, "read a value")
				if schema.Validate(v) == nil {
					continue
				}
				judged = true
				out := c.compile(program(op, []byte(value)))
				if out.GetCompiled() {
					c.fail("%s takes %s, which its schema refuses", op.GetId(), value)
				}
				if len(out.GetDiagnostics()) == 0 {
					c.fail("%s refuses %s and does not say why", op.GetId(), value)
				}
			}
		}
		if !judged {
			c.skip("its schemas refuse nothing")
		}
	}},
	{"judges many as one by one", func(c *check) {
		programs, values, pp, pv, now := c.square()
		together := c.match(programs, values, pp, pv, now)
		for i := range pp {
			alone := c.match([]*matchv1.Program{programs[pp[i]]}, [][]byte{values[pv[i]]}, []uint32{0}, []uint32{0}, now)
			if alone[0] != together[i] {
				c.fail("%s %s with %s is %s alone and %s among others", programs[pp[i]].GetOperatorId(), programs[pp[i]].GetValueJson(), values[pv[i]],
					matchv1.Verdict(alone[0]), matchv1.Verdict(together[i]))
			}
		}
	}},
	{"says the same each time", sameCase},
	{"survives odd values", func(c *check) {
		programs, _, _, _, now := c.square()
		for _, odd := range []string{`null`, `""`, `{}`, `[]`, `9007199254740993`, `1e400`, `"` + strings.Repeat("x", 1<<20) + `"`, `"\ud800"`, `true`,
			strings.Repeat("[", 500) + strings.Repeat("]", 500)} {
			for _, p := range programs {
				if v := c.match([]*matchv1.Program{p}, [][]byte{[]byte(odd)}, []uint32{0}, []uint32{0}, now); v[0] > byte(matchv1.Verdict_VERDICT_FAILED) {
					c.fail("%s answers %d, which is no verdict", p.GetOperatorId(), v[0])
				}
			}
		}
	}},
	{"asks for a program that it was not given", func(c *check) {
		op := c.operators()[0]
		p := program(op, []byte(`"unheard of"`))
		p.ValueJson = nil
		ctx, cancel := c.call(15 * time.Second)
		defer cancel()
		out, err := c.process().Matcher().MatchBatch(ctx, &matchv1.MatchBatchRequest{
			InstanceId: instanceID, Programs: []*matchv1.Program{p}, Values: [][]byte{[]byte(`"x"`)}, PairProgram: []uint32{0}, PairValue: []uint32{0}, NowUs: now(),
		})
		c.no(err, "MatchBatch")
		if len(out.GetNeedPrograms()) != 1 || len(out.GetVerdicts()) == 1 && out.GetVerdicts()[0] != 0 {
			c.fail("it was not given the value and needs %v, with the verdicts %v", out.GetNeedPrograms(), out.GetVerdicts())
		}
	}},
	{"leaves unknown what the time is too short for", shortCase},
}}

func now() int64 { return time.Now().UnixMicro() }

// operators opens the instance, once, and returns its operators.
func (c *check) operators() []*matchv1.Operator {
	if c.operates != nil {
		return c.operates
	}
	c.openMatcher(c.process())
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	described, err := c.process().Matcher().Describe(ctx, &matchv1.DescribeRequest{InstanceId: instanceID})
	c.no(err, "Describe")
	if !described.GetDescribed() || len(described.GetOperators()) == 0 {
		c.fail("it describes no operator: %s", failed(described.GetError()))
	}
	c.operates = described.GetOperators()
	return c.operates
}

func (c *check) openMatcher(p *candidate.Process) {
	if out := c.configureIn(p, instanceID, 1, c.target.Config); !out.GetAccepted() {
		c.fail("Configure refuses the config: %s %s", diagnostics(out.GetDiagnostics()), out.GetError().GetMessage())
	}
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	out, err := p.Matcher().Open(ctx, &matchv1.OpenRequest{InstanceId: instanceID})
	c.no(err, "Open")
	if !out.GetOpened() || out.GetProperties() == nil {
		c.fail("it does not open: %s", failed(out.GetError()))
	}
	c.matches = out.GetProperties()
}

func (c *check) valueSchema(op *matchv1.Operator) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(op.GetValueSchema()))
	c.no(err, "read the schema of "+op.GetId())
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	c.no(compiler.AddResource("value.json", doc), "read the schema of "+op.GetId())
	schema, err := compiler.Compile("value.json")
	c.no(err, "compile the schema of "+op.GetId())
	return schema
}

// program names the value of a filter as the host does.
func program(op *matchv1.Operator, value []byte) *matchv1.Program {
	id := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", op.GetId(), op.GetVersion(), value))
	return &matchv1.Program{ProgramId: id[:16], OperatorId: op.GetId(), ValueJson: value}
}

func (c *check) compile(p *matchv1.Program) *matchv1.CompileResult {
	ctx, cancel := c.call(15 * time.Second)
	defer cancel()
	out, err := c.process().Matcher().Compile(ctx, &matchv1.CompileRequest{InstanceId: instanceID, Programs: []*matchv1.Program{p}})
	c.no(err, "Compile")
	if out.GetError() != nil {
		c.fail("it compiles nothing: %s", failed(out.GetError()))
	}
	if len(out.GetResults()) != 1 {
		c.fail("%d results for one program", len(out.GetResults()))
	}
	return out.GetResults()[0]
}

func (c *check) match(programs []*matchv1.Program, values [][]byte, pairProgram, pairValue []uint32, at int64) []byte {
	return c.matchIn(c.process(), programs, values, pairProgram, pairValue, at)
}

func (c *check) matchIn(p *candidate.Process, programs []*matchv1.Program, values [][]byte, pairProgram, pairValue []uint32, at int64) []byte {
	if at == 0 {
		at = now()
	}
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	out, err := p.Matcher().MatchBatch(ctx, &matchv1.MatchBatchRequest{
		InstanceId: instanceID, Programs: programs, Values: values, PairProgram: pairProgram, PairValue: pairValue, NowUs: at,
	})
	c.no(err, "MatchBatch")
	if out.GetError() != nil {
		c.fail("it judges nothing: %s", failed(out.GetError()))
	}
	if len(out.GetVerdicts()) != len(pairProgram) {
		c.fail("%d verdicts for %d pairs", len(out.GetVerdicts()), len(pairProgram))
	}
	return out.GetVerdicts()
}

// square is every value of the examples with every property of the examples.
func (c *check) square() (programs []*matchv1.Program, values [][]byte, pairProgram, pairValue []uint32, at int64) {
	for _, op := range c.operators() {
		for _, e := range op.GetExamples() {
			programs = append(programs, program(op, e.GetValueJson()))
			values = append(values, e.GetPropertyJson())
		}
	}
	programs, values = programs[:min(len(programs), 20)], values[:min(len(values), 20)]
	if len(programs) == 0 {
		c.skip("it has no examples")
	}
	for i := range programs {
		for j := range values {
			if json.Valid(values[j]) {
				pairProgram, pairValue = append(pairProgram, uint32(i)), append(pairValue, uint32(j))
			}
		}
	}
	return programs, values, pairProgram, pairValue, now()
}

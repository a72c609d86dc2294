package sdk

import (
	"bytes"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
)

// maxPrograms is how many compiled programs an instance keeps. One that was
// evicted is requested again.
const maxPrograms = 10_000

// matcherValue is a matcher with its operators and the programs it has compiled.
type matcherValue struct {
	Matcher
	operators []Operator
	byID      map[string]*operator

	mu    sync.Mutex
	table map[string]*list.Element // by program id
	order *list.List               // of *compiled, least recently used first
}

func newMatcherValue(m Matcher) *matcherValue {
	return &matcherValue{Matcher: m, byID: map[string]*operator{}, table: map[string]*list.Element{}, order: list.New()}
}

func (v *matcherValue) author() any { return v.Matcher }

// operator is one of the matcher's, with its schema.
type operator struct {
	Operator
	schema *jsonschema.Schema // nil takes anything
}

// compiled is a program, or why there is none.
type compiled struct {
	id      string
	program Program
	err     *Error
}

var operatorID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$`)

// learn loads the operators of an open matcher.
func (v *matcherValue) learn() error {
	v.operators = v.Operators()
	for _, o := range v.operators {
		if !operatorID.MatchString(o.ID) {
			return Errorf(ClassInternal, "operator", "operator %q: want two lower-case words with a slash between them", o.ID)
		}
		if v.byID[o.ID] != nil {
			return Errorf(ClassInternal, "operator", "operator %q is there twice", o.ID)
		}
		schema, err := valueSchema(o.ValueSchema)
		if err != nil {
			return Errorf(ClassInternal, "operator", "operator %q, schema of the value: %v", o.ID, err)
		}
		v.byID[o.ID] = &operator{Operator: o, schema: schema}
	}
	return nil
}

func valueSchema(text json.RawMessage) (*jsonschema.Schema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is loaded from anywhere
	if err := c.AddResource("value.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("value.json")
}

// compile checks a value and has the author make a program of it.
func (v *matcherValue) compile(log *slog.Logger, p *matchv1.Program) (Program, error) {
	o := v.byID[p.GetOperatorId()]
	if o == nil {
		return nil, Errorf(ClassUnsupported, "unknown_operator", "there is no operator %q", p.GetOperatorId())
	}
	if o.schema != nil {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(p.GetValueJson()))
		if err != nil {
			return nil, ValueError("", fmt.Errorf("not JSON: %w", err))
		}
		if err := o.schema.Validate(value); err != nil {
			return nil, schemaErrors(err)
		}
	}
	var program Program
	err := guard(log, func() (err error) {
		program, err = v.Compile(o.ID, json.RawMessage(p.GetValueJson()))
		return err
	})
	if err == nil && program == nil {
		err = Errorf(ClassInternal, "no_program", "operator %q made no program", o.ID)
	}
	return program, err
}

// schemaErrors turns what a value does not keep to into errors with pointers.
func schemaErrors(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return ValueError("", err)
	}
	var all []error
	for _, unit := range invalid.BasicOutput().Errors {
		if unit.Error != nil {
			all = append(all, ValueError(unit.InstanceLocation, errors.New(unit.Error.String())))
		}
	}
	if len(all) == 0 {
		return ValueError("", errors.New(strings.TrimSpace(invalid.Error())))
	}
	return errors.Join(all...)
}

// find returns a program that was compiled before; keep adds one.
func (v *matcherValue) find(id string) *compiled {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, ok := v.table[id]
	if !ok {
		return nil
	}
	v.order.MoveToBack(at)
	return at.Value.(*compiled)
}

func (v *matcherValue) keep(c *compiled) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at, ok := v.table[c.id]; ok {
		at.Value = c
		v.order.MoveToBack(at)
		return
	}
	v.table[c.id] = v.order.PushBack(c)
	if v.order.Len() > maxPrograms {
		oldest := v.order.Front()
		delete(v.table, oldest.Value.(*compiled).id)
		v.order.Remove(oldest)
	}
}

// program returns the compiled form of what a request names; nil means that its
// value is needed.
func (v *matcherValue) program(log *slog.Logger, p *matchv1.Program) *compiled {
	id := string(p.GetProgramId())
	if c := v.find(id); c != nil {
		return c
	}
	if len(p.GetValueJson()) == 0 {
		return nil
	}
	program, err := v.compile(log, p)
	c := &compiled{id: id, program: program, err: AsError(err)}
	if err == nil || c.err.Class == ClassConfig {
		v.keep(c)
	}
	return c
}

package match

import (
	"encoding/json"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/match/pattern"
)

// Limits of a whole definition: bytes, property filters, and instructions of
// its compiled regular expressions, about 40 bytes each in the memory of every
// server.
const (
	maxDefinition   = 512 << 10
	maxConditions   = 1000
	maxRegexProgram = 50_000
)

// checkLimits rejects a definition that is too large before anything is
// compiled. It returns the size of the regular expressions.
func checkLimits(steps []Step) (program int64, err error) {
	size, conditions := 0, 0
	for i := range steps {
		s := &steps[i]
		for _, field := range s.TextFields() {
			size += len(*field.Value)
		}
		for _, p := range []struct{ mode, pattern string }{{s.URLMatching, s.URL}, {s.TextMatching, s.Text}, {s.HrefMatching, s.Href}} {
			if p.mode == "regex" {
				program += programSize(p.pattern)
			}
		}
		conditions += len(s.Properties)
		for _, raw := range s.Properties {
			if size += len(raw); size <= maxDefinition {
				program += filterProgramSize(raw)
			}
		}
		if size > maxDefinition || conditions > maxConditions || program > maxRegexProgram {
			break
		}
	}
	switch {
	case size > maxDefinition:
		return 0, fault.Fieldf("steps", "max_length", "The steps of an action may have at most %d KB.", maxDefinition>>10)
	case conditions > maxConditions:
		return 0, fault.Fieldf("steps", "max_length", "An action may have at most %d property filters.", maxConditions)
	}
	if err := (match.Limits{Definition: maxRegexProgram}).CheckDefinition("action", program); err != nil {
		return 0, fault.From(err).At("steps")
	}
	return program, nil
}

// filterProgramSize is the size of the regular expressions of a filter.
func filterProgramSize(raw json.RawMessage) (size int64) {
	var f struct {
		Operator string
		Value    json.RawMessage
	}
	if json.Unmarshal(raw, &f) != nil || match.FormOf(f.Operator) != match.PatternForm {
		return 0 // Compile reports the error
	}
	var one string
	if json.Unmarshal(f.Value, &one) == nil {
		return programSize(one)
	}
	var list []json.RawMessage
	_ = json.Unmarshal(f.Value, &list)
	for _, v := range list {
		if json.Unmarshal(v, &one) == nil {
			size += programSize(one)
		}
		if size > maxRegexProgram {
			break
		}
	}
	return size
}

// programSize is the number of instructions of a regular expression, estimated
// without compiling it; 0 for an invalid one.
func programSize(expression string) int64 {
	size, _ := pattern.Check(expression, maxRegexProgram) // the sum reports an error
	return size.Memory
}

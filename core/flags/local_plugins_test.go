package flags_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
)

func TestLocalEvaluationMarksOperatorsOfPlugins(t *testing.T) {
	t.Parallel()
	stored := eval.ProjectDefinitions{Flags: []eval.Definition{
		flagstest.Define(1, "place", places("a")),
		flagstest.Define(2, "net", `{"groups":[{"properties":[{"key":"ip","operator":"cidr/contains","value":"10.0.0.0/8"},{"key":"path","value":"a/b"}]}]}`),
	}}
	doc := string(flags.LocalEvaluation(stored, false, &compass{}))
	if strings.Count(doc, `"equivalent":"value == property"`) != 1 || strings.Count(doc, `"remote_only":true`) != 1 {
		t.Error(doc)
	}
}

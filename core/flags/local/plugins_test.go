package local_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/flagstest"
	"github.com/guidonhq/guidon/core/flags/local"
	"github.com/guidonhq/guidon/core/match"
)

// geoRegistry knows the operator geo/at, which has an equivalent expression.
type geoRegistry struct{}

func (geoRegistry) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{Source: "geo", Equivalent: "value == property"}, id == "geo/at"
}

func TestFiltersWithOperatorsOfPluginsAreMarked(t *testing.T) {
	t.Parallel()
	stored := eval.ProjectDefinitions{Flags: []eval.Definition{
		flagstest.Define(1, "place", `{"groups":[{"properties":[{"key":"place","operator":"geo/at","value":"a"}]}]}`),
		flagstest.Define(2, "net", `{"groups":[{"properties":[{"key":"ip","operator":"cidr/contains","value":"10.0.0.0/8"},{"key":"path","value":"a/b"}]}]}`),
	}}
	doc := string(local.Document(stored, local.Options{Operators: geoRegistry{}}))
	if strings.Count(doc, `"equivalent":"value == property"`) != 1 || strings.Count(doc, `"remote_only":true`) != 1 {
		t.Error(doc)
	}
}

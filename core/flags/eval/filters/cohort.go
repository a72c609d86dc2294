package filters

import (
	"errors"
	"strings"
)

// Tree is the decoded form of a cohort's filters. All its properties and trees
// must match, or any of them.
type Tree struct {
	Any        bool
	Properties []Property
	Trees      []Tree
}

var (
	errTree     = errors.New("not an object of properties")
	errTreeType = errors.New("the type of a group is neither AND nor OR")
)

// ParseTree decodes the JSON text of a cohort's filters, which may be wrapped in
// "properties". The tree is nil if it has no filters: everyone is in the cohort.
// A tree that comes with an error is incomplete.
func ParseTree(raw []byte) (*Tree, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	root, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	if inner := root.given("properties"); inner != nil {
		properties, ok := objectOf(inner)
		if !ok {
			return nil, errTree
		}
		root = properties
	}
	return readTree(root)
}

func readTree(in fields) (*Tree, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := &Tree{}
	switch strings.ToUpper(looseText(in.given("type"))) {
	case "OR":
		out.Any = true
	case "AND", "PROPERTY":
	default:
		return nil, errTreeType
	}
	r := &reader{}
	for _, item := range r.list("values", in.given("values")) {
		f := r.object("values", item)
		if _, nested := f["values"]; !nested && len(f) > 0 {
			out.Properties = append(out.Properties, r.property("values", item))
			continue
		}
		inner, err := readTree(f)
		if err != nil {
			return nil, err
		}
		if inner == nil {
			inner = &Tree{}
		}
		out.Trees = append(out.Trees, *inner)
	}
	if r.err != nil {
		return out, r.err
	}
	return out, nil
}

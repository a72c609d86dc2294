package persons

import "strings"

// People are shown, and looked for, by what they call themselves. These
// properties say it, the first that has a value wins.
var nameProperties = []string{"email", "Email", "name", "Name", "username", "Username", "UserName"}

// maxLabel is how many bytes of names are searched.
const maxLabel = 400

// label is the text a person is found by: their names in lower case, one a
// line; "" when nothing is known.
func (o *object) label() string {
	var names []string
	for _, key := range nameProperties {
		if val := o.get(key); truthy(val) {
			names = append(names, strings.ToLower(scalar(val)))
		}
	}
	l := strings.Join(names, "\n")
	if len(l) > maxLabel {
		l = strings.ToValidUTF8(l[:maxLabel], "")
	}
	return l
}

// label is that of the properties, nil when there is none.
func (p *person) label() *string { return given(p.properties().label()) }

func (g *group) label() *string { return given(g.props.label()) }

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Name is what a person is called: the first of their names, or a distinct id.
func (p *Person) Name() string {
	o, _ := parseObject(string(p.Properties))
	for _, key := range nameProperties {
		if val := o.get(key); truthy(val) {
			if name := strings.TrimSpace(scalar(val)); name != "" {
				return name
			}
		}
	}
	if len(p.DistinctIDs) > 0 {
		return p.DistinctIDs[0]
	}
	return ""
}

package match

import "encoding/json"

// Step is one way for an event to fit. Empty fields are no conditions; the
// empty step fits every event.
type Step struct {
	ID   string `json:"id"`
	Name string `json:"name"`

	Event string `json:"event"` // the name, exactly

	URL         string `json:"url"`
	URLMatching string `json:"url_matching"` // "" is contains

	TagName      string `json:"tag_name"`
	Text         string `json:"text"`
	TextMatching string `json:"text_matching"` // "" is exact
	Href         string `json:"href"`
	HrefMatching string `json:"href_matching"` // "" is exact
	Selector     string `json:"selector"`

	// Properties are filters that must all hold, as they were written.
	Properties []json.RawMessage `json:"properties"`

	// Null lists the fields above that were null or absent rather than "", so
	// that a definition is returned as it was written.
	Null []string `json:"null,omitempty"`
}

// TextField is a text field of a step.
type TextField struct {
	Name  string
	Value *string
}

// TextFields returns the text fields of the step, by their JSON names.
func (s *Step) TextFields() []TextField {
	return []TextField{
		{"id", &s.ID}, {"name", &s.Name}, {"event", &s.Event}, {"url", &s.URL}, {"url_matching", &s.URLMatching},
		{"tag_name", &s.TagName}, {"text", &s.Text}, {"text_matching", &s.TextMatching},
		{"href", &s.Href}, {"href_matching", &s.HrefMatching}, {"selector", &s.Selector},
	}
}

package match_test

import (
	"encoding/json"
	"strings"
	"testing"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

func TestExplanationsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1000)
	chain := strings.Repeat(`a.b:attr_id="i"text="x";`, 30)
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: long, Properties: []byte(`{"$current_url":"` + long + `","list":["` + long + `"]}`), ElementsChain: chain})
	e := lenient(t, actionmatch.Step{Event: long + "!", URL: long + "!", Selector: "b", Properties: filters(
		`{"key":"list","value":["`+long+`!"]}`, `{"key":"selector","type":"element","value":"b"}`).Properties}).Explain(s, &match.Env{})
	raw, err := json.Marshal(e)
	if err != nil || len(raw) > 6000 || !json.Valid(raw) {
		t.Errorf("%d bytes: %s", len(raw), raw)
	}
	if !strings.Contains(string(raw), "a#i.b") {
		t.Errorf("no element is shown: %s", raw)
	}
}

func TestExplainSameElement(t *testing.T) {
	t.Parallel()
	s := new(actionmatch.EventView)
	s.Reset(&sdk.Event{Name: "e", ElementsChain: `span:text="Buy";a:href="/x"text="Now"`})
	e := lenient(t, actionmatch.Step{TagName: "a", Text: "Buy"}).Explain(s, &match.Env{})
	fields := e.Steps[0].Fields
	last := fields[len(fields)-1]
	if len(fields) != 3 || last.Field != "element" || result(last.Matches) != no || last.Reason == "" {
		t.Errorf("fields %s", show(fields))
	}
}

package decide_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/decide"
)

// outage is a store that does not answer, and what was read from it before.
type outage struct {
	memoryStore
	age time.Duration
}

func (o *outage) Properties(context.Context, int64, string) ([]byte, bool, error) {
	return nil, false, errors.New("the database is away")
}

func (o *outage) LastProperties(_ int64, distinctID string) (decide.Known, bool) {
	p, ok := o.people[distinctID]
	return decide.Known{Properties: []byte(p), Found: true, At: time.Now().Add(-o.age)}, ok
}

func (o *outage) LastGroupProperties(int64, string, string) (decide.Known, bool) {
	return decide.Known{}, false
}

// While lookups fail, flags are decided from the known properties, and the answer has
// their age. That holds for the lookups that fail and for those that are skipped.
func TestKnownPropertiesAnswerWhileLookupsFail(t *testing.T) {
	t.Parallel()
	o := &outage{memoryStore{people: map[string]string{"u": `{"email":"u@corp.test"}`}}, 90 * time.Second}
	base := serve(t, sampleProject(), decide.Lookups{People: o, Known: o, Memberships: o, HashKeys: o})
	for range 50 { // the breaker opens meanwhile
		_, got, header := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u","flag_keys":["mail"]}`)
		flags, _ := got["featureFlags"].(map[string]any)
		if flags["mail"] != true || got["errorsWhileComputingFlags"] != false {
			t.Fatalf("got %v", got)
		}
		if age, err := strconv.Atoi(header.Get("Guidon-Properties-Age")); err != nil || age < 90 || age > 3600 {
			t.Fatalf("age %q", header.Get("Guidon-Properties-Age"))
		}
	}
	_, got, header := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"unknown","flag_keys":["mail"]}`)
	if flags, _ := got["featureFlags"].(map[string]any); flags["mail"] != nil || got["errorsWhileComputingFlags"] != true || header.Get("Guidon-Properties-Age") != "" {
		t.Errorf("a person without known properties: %v, age %q", got, header.Get("Guidon-Properties-Age"))
	}
}

// Properties that are older than the limit are not used.
func TestKnownPropertiesHaveALimitOfAge(t *testing.T) {
	t.Parallel()
	o := &outage{memoryStore{people: map[string]string{"u": `{"email":"u@corp.test"}`}}, 2 * time.Hour}
	base := serve(t, sampleProject(), decide.Lookups{People: o, Known: o, Memberships: o, HashKeys: o})
	_, got, _ := post(t, base+"/decide?v=3", "application/json", `{"token":"phc_test","distinct_id":"u","flag_keys":["mail"]}`)
	if flags, _ := got["featureFlags"].(map[string]any); flags["mail"] != nil || got["errorsWhileComputingFlags"] != true {
		t.Errorf("got %v", got)
	}
}

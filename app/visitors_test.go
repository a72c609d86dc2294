package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/geoip/geoiptest"
)

// from sends a request of a client at an address, behind a trusted proxy.
func (s *server) from(t *testing.T, address, path, body string, header ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", address)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, res.StatusCode, raw, err)
	}
	return string(raw)
}

// TestGeoIP captures and decides with a database of locations: events and persons
// get the location of the client, flags on the country match by the address.
func TestGeoIP(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *app.Config) { c.GeoIP.Database = geoiptest.Write(t) })
	capture := func(address, id, properties string) {
		t.Helper()
		s.from(t, address, "/i/v0/e/", `{"api_key":"`+s.ProjectKey+`","event":"seen","distinct_id":"`+id+`","properties":`+properties+`}`)
	}
	capture(geoiptest.BerlinAddress, "near", `{}`)
	capture(geoiptest.BerlinAddress, "named", `{"$ip":"`+geoiptest.ParisAddress+`","$geoip_postal_code":"mine"}`)
	capture(geoiptest.BerlinAddress, "off", `{"$geoip_disable":true}`)
	capture(geoiptest.PrivateAddress, "inside", `{}`)
	has := func(path, want string, more ...string) func() bool {
		return func() bool {
			_, answer, _ := s.request(t, http.MethodGet, s.URL+path, "")
			for _, text := range append(more, want) {
				if !strings.Contains(answer, text) {
					return false
				}
			}
			return true
		}
	}
	s.until(t, "the event has the location of the client", has("/api/projects/1/events/?distinct_id=near", `"$geoip_city_name":"Berlin"`, `"$geoip_latitude":52.5196`))
	s.until(t, "its person has it, too", has("/api/projects/1/persons/?distinct_id=near", `"$geoip_country_code":"DE"`, `"$initial_geoip_city_name":"Berlin"`))
	s.until(t, "the event has the location of the address that it names", has("/api/projects/1/events/?distinct_id=named", `"$geoip_city_name":"Paris"`, `"$geoip_postal_code":"mine"`))
	for _, id := range []string{"off", "inside"} {
		s.until(t, "the event is stored", has("/api/projects/1/events/?distinct_id="+id, `"event":"seen"`))
		if has("/api/projects/1/events/?distinct_id="+id, "$geoip_country")() {
			t.Errorf("%s has a location", id)
		}
	}

	s.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/",
		`{"key":"german","filters":{"groups":[{"properties":[{"key":"$geoip_country_code","value":["DE"],"operator":"exact","type":"person"}],"rollout_percentage":100}]}}`)
	for _, c := range []struct {
		name, address, fields string
		want                  bool
	}{
		{"by the address", geoiptest.BerlinAddress, ``, true},
		{"by another address", geoiptest.ParisAddress, ``, false},
		{"turned off", geoiptest.BerlinAddress, `,"geoip_disable":true`, false},
		{"by the property of the request", geoiptest.ParisAddress, `,"person_properties":{"$geoip_country_code":"DE"}`, true},
		{"by the property of the request against the address", geoiptest.BerlinAddress, `,"person_properties":{"$geoip_country_code":"FR"}`, false},
		{"null is no property", geoiptest.BerlinAddress, `,"person_properties":{"$geoip_country_code":null}`, true},
		{"by the address against the stored property", geoiptest.ParisAddress, `,"distinct_id":"near"`, false},
		{"by the stored property", geoiptest.UnknownAddress, `,"distinct_id":"near"`, true},
	} {
		answer := s.from(t, c.address, "/flags/?v=2", `{"token":"`+s.ProjectKey+`","distinct_id":"someone"`+c.fields+`}`)
		if strings.Contains(answer, `"enabled":true`) != c.want || !strings.Contains(answer, `"german"`) {
			t.Errorf("%s: %s", c.name, answer)
		}
		context := strings.ReplaceAll(`{"targetingKey":"someone"`+c.fields+`}`, `,"person_properties":{`, `,`)
		context = strings.ReplaceAll(strings.ReplaceAll(context, `}}`, `}`), `"targetingKey":"someone","distinct_id"`, `"targetingKey"`)
		answer = s.from(t, c.address, "/ofrep/v1/evaluate/flags/german", `{"context":`+context+`}`, "Authorization", "Bearer "+s.ProjectKey)
		if strings.Contains(answer, `"value":true`) != c.want {
			t.Errorf("%s over OFREP: %s", c.name, answer)
		}
	}
	_, answer, _ := s.request(t, http.MethodPost, s.URL+"/api/projects/1/feature_flags/explain", `{"distinct_id":"someone","$ip":"`+geoiptest.BerlinAddress+`"}`)
	if !strings.Contains(answer, `"seen":"DE","source":"location"`) {
		t.Errorf("explain: %s", answer)
	}
	_, answer, _ = s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
	if !strings.Contains(answer, `"geoip":{"state":"ok","type":"Guidon-Test-City"`) || !strings.Contains(answer, `"status":"ready"`) {
		t.Errorf("readiness: %s", answer)
	}
}

// TestVisitorsWithoutCookies captures and decides for browsers without cookies: the
// events and the flags of a visitor have one id, and no person is made.
func TestVisitorsWithoutCookies(t *testing.T) {
	t.Parallel()
	s := serve(t)
	browse := func(address string) {
		t.Helper()
		s.from(t, address, "/i/v0/e/", `{"api_key":"`+s.ProjectKey+`","event":"seen","distinct_id":"$posthog_cookieless","properties":{"$cookieless_mode":true,"$host":"www.example.com","$raw_user_agent":"Browser 1"}}`)
	}
	browse(geoiptest.BerlinAddress)
	browse(geoiptest.ParisAddress)
	browse(geoiptest.BerlinAddress)
	var ids []string
	s.until(t, "the events are stored", func() bool {
		_, answer, _ := s.request(t, http.MethodGet, s.URL+"/api/projects/1/events/?event=seen", "")
		var list struct {
			Results []struct {
				DistinctID string          `json:"distinct_id"`
				Properties json.RawMessage `json:"properties"`
			} `json:"results"`
		}
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			t.Fatal(err)
		}
		ids = ids[:0]
		for _, e := range list.Results {
			ids = append(ids, e.DistinctID)
			if strings.Contains(string(e.Properties), "$ip") || strings.Contains(string(e.Properties), "Browser 1") {
				t.Errorf("an event has %s", e.Properties)
			}
		}
		return len(ids) == 3
	})
	slices.Sort(ids)
	if visitors := slices.Compact(slices.Clone(ids)); len(visitors) != 2 || !strings.HasPrefix(ids[0], "cookieless_") {
		t.Errorf("the visitors are %v", ids)
	}
	if _, answer, _ := s.request(t, http.MethodGet, s.URL+"/api/projects/1/persons/", ""); strings.Contains(answer, "cookieless_") {
		t.Errorf("a person was made: %s", answer)
	}
	s.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/",
		`{"key":"first","filters":{"groups":[{"properties":[{"key":"distinct_id","value":["`+ids[1]+`"],"operator":"exact","type":"person"}],"rollout_percentage":100}]}}`)
	on := 0
	for _, address := range []string{geoiptest.BerlinAddress, geoiptest.ParisAddress, geoiptest.UnknownAddress} {
		flags := s.from(t, address, "/flags/?v=2", `{"token":"`+s.ProjectKey+`","distinct_id":"$posthog_cookieless"}`, "Origin", "https://www.example.com", "User-Agent", "Browser 1")
		ofrep := s.from(t, address, "/ofrep/v1/evaluate/flags/first", `{"context":{"targetingKey":"$posthog_cookieless"}}`,
			"Origin", "https://shop.example.com", "User-Agent", "Browser 1", "Authorization", "Bearer "+s.ProjectKey)
		enabled := strings.Contains(flags, `"enabled":true`)
		if enabled {
			on++
		}
		if enabled != strings.Contains(ofrep, `"value":true`) {
			t.Errorf("%s: %s, over OFREP %s", address, flags, ofrep)
		}
	}
	if on != 1 {
		t.Errorf("the flag is on for %d visitors", on)
	}
}

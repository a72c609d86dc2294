package stage

import (
	"strings"

	"github.com/guidonhq/guidon/core/geoip/location"
)

// Properties that describe the client are copied from an event to its person:
// the latest value under the name of the event property, the first value under
// $initial_<name>.
//
// Many of them change with every page or window. A change of such an
// insignificant property is stored together with other changes and does not
// cause a write of its own; otherwise every page view would rewrite a person.
//
// The properties of a location are copied together: those that the new location
// does not have are removed, and the first location is never completed by another
// one. Otherwise a person who has moved would be in a city of the old country.

// copyRule is the way one event property is copied.
type copyRule struct {
	name          string // on the person
	initial       string // for the first value
	insignificant bool   // a change alone does not cause a write
	client        bool   // meaningless if a server sent the event
	location      bool   // part of a location, whose properties change together
}

var copyRules = func() map[string]*copyRule {
	m := map[string]*copyRule{}
	add := func(insignificant, client bool, names string) {
		for _, n := range strings.Fields(names) {
			m[n] = &copyRule{name: n, initial: "$initial_" + strings.TrimPrefix(n, "$"), insignificant: insignificant, client: client}
		}
	}
	add(true, false, `$browser $browser_version $device_type $current_url $pathname $referring_domain $referrer
		$screen_height $screen_width $viewport_height $viewport_width $raw_user_agent`)
	add(true, true, `$os $os_version`)
	add(false, false, `$app_build $app_name $app_namespace $app_version
		utm_source utm_medium utm_campaign utm_content utm_name utm_term
		gclid gad_source gclsrc dclid gbraid wbraid fbclid msclkid twclid li_fat_id mc_cid igshid ttclid rdt_cid
		irclid _kx epik qclid sccid`)
	m["$os_name"] = m["$os"] // the name that mobile clients use
	for _, n := range location.Names {
		add(isInsignificantKey(n), false, n)
		m[n].location = true
	}
	return m
}()

// serverLibs are client libraries that run on servers: their operating system
// is not the person's.
var serverLibs = map[string]bool{
	"posthog-node": true, "posthog-go": true, "posthog-python": true, "posthog-php": true, "posthog-ruby": true,
	"posthog-java": true, "posthog-dotnet": true, "posthog-elixir": true, "posthog-rs": true, "posthog-edge": true,
	"posthog-server": true,
}

// isInsignificantKey reports whether a change of the person property key alone
// causes no write: properties derived from the client address, except country
// and city, change with the network.
func isInsignificantKey(key string) bool {
	return strings.HasPrefix(key, "$geoip_") && key != "$geoip_country_name" && key != "$geoip_city_name"
}

// initialLocation starts the names of the properties of a first location.
const initialLocation = "$initial_geoip_"

// CopiedPropertyNames returns the person properties that hold copies of an event
// property: the latest value and the first one; nil for properties that are
// not copied.
func CopiedPropertyNames(property string) []string {
	if r := copyRules[property]; r != nil {
		return []string{r.name, r.initial}
	}
	return nil
}

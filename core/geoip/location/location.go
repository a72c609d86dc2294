// Package location is the location of an address as properties of an event or a
// person: the names, and a compact form that a journal record and a cache hold.
//
// The compact form has the values in the order of Names, each as JSON text behind
// its length. It is about 150 bytes, a third of the properties with their names.
//
// The package knows no database: core/geoip fills locations in.
package location

import (
	"bytes"
	"strings"
)

// Names are the properties of a location, in the order of their values. Versions of
// the server read records of each other, so names are only added at the end.
var Names = [...]string{
	"$geoip_city_name",
	"$geoip_country_name",
	"$geoip_country_code",
	"$geoip_continent_name",
	"$geoip_continent_code",
	"$geoip_postal_code",
	"$geoip_latitude",
	"$geoip_longitude",
	"$geoip_accuracy_radius",
	"$geoip_time_zone",
	"$geoip_subdivision_1_code",
	"$geoip_subdivision_1_name",
	"$geoip_subdivision_2_code",
	"$geoip_subdivision_2_name",
	"$geoip_subdivision_3_code",
	"$geoip_subdivision_3_name",
}

// Prefix starts each of Names.
const Prefix = "$geoip_"

// Disable is the property, and without its dollar sign the field of a flag request,
// by which a client asks for no location.
const Disable = "$geoip_disable"

// maxValue is the length of the longest value of the compact form.
const maxValue = 255

// Values are JSON texts in the order of Names. An empty one is unknown.
type Values [len(Names)]string

// Append appends the compact form: nothing for values of which none is known. It
// leaves out values of more than 255 bytes.
func (v *Values) Append(dst []byte) []byte {
	if *v == (Values{}) {
		return dst
	}
	for _, text := range v {
		if len(text) > maxValue {
			text = ""
		}
		dst = append(append(dst, byte(len(text))), text...)
	}
	return dst
}

// Each calls fn for each known value of the compact form, in the order of Names. It
// stops at a form that is cut short, and ignores values behind those of Names.
func Each(compact []byte, fn func(name string, value []byte)) {
	for _, name := range Names {
		if len(compact) == 0 || len(compact) <= int(compact[0]) {
			return
		}
		value := compact[1 : 1+int(compact[0])]
		compact = compact[1+len(value):]
		if len(value) > 0 {
			fn(name, value)
		}
	}
}

// AppendMembers appends the properties as members of a JSON object, each with a
// comma behind it, without those that skip accepts. A nil skip accepts none.
func AppendMembers(dst, compact []byte, skip func(name string) bool) []byte {
	Each(compact, func(name string, value []byte) {
		if skip != nil && skip(name) {
			return
		}
		dst = append(append(append(dst, '"'), name...), `":`...)
		dst = append(append(dst, value...), ',')
	})
	return dst
}

// AppendObject appends the properties as a JSON object.
func AppendObject(dst, compact []byte) []byte {
	dst = AppendMembers(append(dst, '{'), compact, nil)
	return append(bytes.TrimSuffix(dst, []byte(",")), '}')
}

// Is reports whether name is a property of a location.
func Is(name string) bool { return strings.HasPrefix(name, Prefix) && name != Disable }

package persons

import "strings"

// Some programs send the same distinct id for everybody who is not logged in,
// or the text form of a missing value. Merging with such an id would make one
// person of all visitors, so it is refused; ordinary events may carry it.

// illegalAnyCase are refused in whatever case they come.
var illegalAnyCase = set(`anonymous guest distinctid distinct_id id not_authenticated email undefined true false
	anonymous-user backend system user 00000000-0000-0000-0000-000000000000`)

// illegalAsWritten are refused in this case only: a person may be called Nan.
var illegalAsWritten = set(`NaN None none null 0`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// illegal tells whether id cannot take part in a merge: blank, one of the
// known placeholders, or one of them in quotes.
func illegal(id string) bool {
	id = strings.TrimSpace(id)
	if n := len(id); n >= 2 && (id[0] == '"' || id[0] == '\'') && id[n-1] == id[0] {
		id = strings.TrimSpace(id[1 : n-1])
	}
	return id == "" || id == "[object Object]" || illegalAsWritten[id] || illegalAnyCase[strings.ToLower(id)]
}

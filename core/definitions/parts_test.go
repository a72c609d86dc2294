package definitions

import (
	"testing"
)

func TestTypeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"a", `"x"`, String}, {"a", `""`, String}, {"a", `1`, Numeric}, {"a", `-1.5e3`, Numeric}, {"a", `true`, Boolean}, {"a", `" False "`, Boolean},
		{"a", `null`, ""}, {"a", `{}`, ""}, {"a", `[1]`, ""}, {"a", ``, ""},
		{"a", `"2026-01-02"`, DateTime}, {"a", `"2026/01/02"`, DateTime}, {"a", `"31-01-2026"`, DateTime}, {"a", `"2026-01-02T03:04:05.678Z"`, DateTime},
		{"a", `"2026-01-02 03:04:05+02:00"`, DateTime}, {"a", `"2026-13-02"`, String}, {"a", `"2026-01-02 is a day"`, String}, {"a", `"2026-01-0"`, String},
		{"a", `1767323045`, Numeric}, {"created_at", `1767323045`, DateTime}, {"created_at", `1767323045123`, DateTime}, {"created_at", `7`, Numeric},
		{"$time", `1767323045.5`, DateTime}, {"utm_id", `7`, String}, {"utm_id", `null`, ""}, {"$feature/x", `true`, String},
		{"$feature_flag_response", `true`, String}, {"$survey_response_2", `3`, String},
	} {
		if got := typeOf(c.name, c.value); got != c.want {
			t.Errorf("typeOf(%s, %s) = %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

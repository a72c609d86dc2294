package eval

// Format is the form of the flags in an answer.
type Format uint8

// The forms, from the first version of decide to the newest.
const (
	FormatKeys    Format = iota // an array of the keys that are on
	FormatOn                    // an object of the flags that are on
	FormatValues                // an object of all flags, and their payloads
	FormatDetails               // an object of all flags with reason and metadata
	FormatRecords               // FormatDetails with the flags that failed
	FormatTyped                 // FormatRecords with one typed value per flag
)

// AppendFlags appends the members of the answer that depend on flags, without
// braces and with a comma after each.
func (e *Evaluation) AppendFlags(dst []byte, f Format) []byte {
	failed := false
	switch f {
	case FormatKeys:
		dst, failed = e.appendKeys(append(dst, `"featureFlags":[`...))
		dst = append(dst, `],`...)
	case FormatOn:
		dst, failed = e.appendValues(append(dst, `"featureFlags":{`...), true)
		dst = append(dst, `},`...)
	case FormatValues:
		dst, failed = e.appendValues(append(dst, `"featureFlags":{`...), false)
		dst = e.appendPayloads(append(dst, `},"featureFlagPayloads":{`...))
		dst = append(dst, `},`...)
	case FormatDetails, FormatRecords, FormatTyped:
		dst, failed = e.appendRecords(append(dst, `"flags":{`...), f)
		dst = append(dst, `},`...)
	}
	return appendFailed(dst, failed)
}

// AppendNoFlags is AppendFlags without flags.
func AppendNoFlags(dst []byte, f Format) []byte { return noFlags.AppendFlags(dst, f) }

var noFlags = &Evaluation{set: &Set{}}

func appendFailed(dst []byte, failed bool) []byte {
	if failed {
		return append(dst, `"errorsWhileComputingFlags":true,"errorComputingFlags":true,`...)
	}
	return append(dst, `"errorsWhileComputingFlags":false,"errorComputingFlags":false,`...)
}

func (e *Evaluation) appendKeys(dst []byte) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range e.selected() {
		f, o := e.set.flags[at], &e.outcomes[at]
		if o.stage != settled {
			failed = true
			continue
		}
		if o.on {
			dst = append(appendComma(dst, start), f.quotedKey[:len(f.quotedKey)-1]...)
		}
	}
	return dst, failed
}

func (e *Evaluation) appendValues(dst []byte, onlyOn bool) ([]byte, bool) {
	failed, start := false, len(dst)
	for _, at := range e.selected() {
		f, o := e.set.flags[at], &e.outcomes[at]
		if o.stage != settled {
			failed = true
			continue
		}
		if o.on || !onlyOn {
			dst = f.appendValue(append(appendComma(dst, start), f.quotedKey...), o)
		}
	}
	return dst, failed
}

func (f *flag) appendValue(dst []byte, o *outcome) []byte {
	if !o.on {
		return append(dst, "false"...)
	}
	if quoted := f.quotedVariant(o); quoted != "" {
		return append(dst, quoted...)
	}
	return append(dst, "true"...)
}

func (e *Evaluation) appendPayloads(dst []byte) []byte {
	start := len(dst)
	for _, at := range e.selected() {
		f, o := e.set.flags[at], &e.outcomes[at]
		if o.stage != settled || !o.on {
			continue
		}
		if payload := f.quotedPayload(o); payload != "" {
			dst = append(append(appendComma(dst, start), f.quotedKey...), payload...)
		}
	}
	return dst
}

func appendOrNull(dst []byte, quoted string) []byte {
	if quoted == "" {
		quoted = "null"
	}
	return append(dst, quoted...)
}

// appendComma appends a comma if dst has grown since start.
func appendComma(dst []byte, start int) []byte {
	if len(dst) > start {
		return append(dst, ',')
	}
	return dst
}

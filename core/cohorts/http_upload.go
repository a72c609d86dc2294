package cohorts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

// maxChars is the length limit of names and distinct ids.
const maxChars = 400

func distinctIDs(body *web.Fields, name string) []string {
	var ids []string
	for i, id := range body.Strings(name).Value {
		switch {
		case id == "":
			body.Fail(name+"__"+strconv.Itoa(i), "blank", "This field may not be blank.")
		case len(id) > maxChars:
			body.Fail(name+"__"+strconv.Itoa(i), "max_length", "Ensure this field has no more than "+strconv.Itoa(maxChars)+" characters.")
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// maxUploadRows is the maximum number of rows of an uploaded file.
const maxUploadRows = 1_000_000

// rowBytes is about the memory of a distinct id, cellBytes that of a cell while
// its row is read.
const (
	rowBytes  = 64
	cellBytes = 24
)

// readUpload reads the distinct ids of a CSV file in the field csv of a form: the
// column distinct_id if the first row names one, else the first column. The
// budget of the server pays for them.
func readUpload(c *web.Call, form *web.Fields) ([]string, error) {
	file := form.File("csv")
	rows := bytes.Count(file, []byte{'\n'}) + 1
	if rows > maxUploadRows {
		return nil, fault.Newf(fault.TooLarge, "request_too_large", "Request too large: the file has more than %d rows.", maxUploadRows)
	}
	// One row may hold the whole file and have all of its columns.
	cells := bytes.Count(file, []byte{','})
	if err := web.Memory(c.Ctx).Take(rows*rowBytes + cells*cellBytes + 2*len(file)); err != nil {
		return nil, err
	}
	return readIDs(bytes.NewReader(file))
}

func readIDs(file io.Reader) ([]string, error) {
	rows := csv.NewReader(file)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	var ids []string
	column := 0
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err != nil {
			return nil, fault.Fieldf("csv", rules.CodeInvalid, "The file is no CSV: %v", err)
		}
		if first {
			if at := headingColumn(row); at >= 0 {
				column = at
				continue
			}
		}
		if column < len(row) {
			if id := strings.ToValidUTF8(strings.TrimSpace(row[column]), ""); id != "" && len(id) <= maxChars && !strings.ContainsRune(id, 0) {
				ids = append(ids, strings.Clone(id))
			}
		}
	}
}

// headingColumn returns the column of distinct ids in a row of headings, -1 for a row
// without headings.
func headingColumn(row []string) int {
	for i, name := range row {
		switch strings.ToLower(strings.Trim(name, " \ufeff")) {
		case "distinct_id", "distinct id", "distinct_ids":
			return i
		}
	}
	return -1
}

package cohorts

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

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

// uploaded reads the distinct ids of a CSV file: the column distinct_id if the
// first row names one, else the first column.
func readUpload(c *web.Call) ([]string, error) {
	if !strings.HasPrefix(strings.ToLower(c.Get(fiber.HeaderContentType)), fiber.MIMEMultipartForm) {
		return nil, nil
	}
	part, err := c.FormFile("csv")
	if err != nil {
		return nil, nil // a form without a file
	}
	file, err := part.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readIDs(file)
}

func readIDs(file io.Reader) ([]string, error) {
	rows := csv.NewReader(file)
	rows.FieldsPerRecord = -1
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
				ids = append(ids, id)
			}
		}
	}
}

// headed returns the column of distinct ids in a row of headings, -1 for a row
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

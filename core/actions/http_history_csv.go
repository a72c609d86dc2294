package actions

import (
	"bytes"
	"encoding/csv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// wantsCSV tells whether the answer is to be a table: format=csv, or no format
// and a client that takes text/csv only. An unknown format is NotFound.
func wantsCSV(c *web.Call) (bool, error) {
	switch c.Query("format") {
	case "csv":
		return true, nil
	case "json":
		return false, nil
	case "":
		return c.Accepts(fiber.MIMEApplicationJSON, "text/csv") == "text/csv", nil
	}
	return false, fault.New(fault.NotFound, "not_found", "Not found.")
}

// answerCSV answers with a table.
func answerCSV(c *web.Call, head []string, rows [][]string) error {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	if err := w.Write(head); err != nil {
		return err
	}
	for _, row := range rows {
		for i := range row {
			row[i] = harmless(row[i])
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	c.Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	return c.Send(out.Bytes())
}

// harmless is a cell that no spreadsheet takes for a formula.
func harmless(cell string) string {
	if cell == "" {
		return cell
	}
	bare := strings.TrimLeftFunc(cell, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\ufeff' })
	first, _ := utf8.DecodeRuneInString(bare)
	if strings.ContainsRune("=+-@＝＋－＠", first) && bare != "" || strings.IndexByte("\t\r\n", cell[0]) >= 0 {
		return "'" + cell
	}
	return cell
}

func peopleCSV(c *web.Call, people []Person) error {
	rows := make([][]string, len(people))
	for i := range people {
		p := &people[i]
		first, email := "", ""
		if len(p.DistinctIDs) > 0 {
			first = p.DistinctIDs[0]
		}
		if v, err := fastjson.ParseBytes(p.Properties); err == nil {
			email = string(v.GetStringBytes("email"))
		}
		rows[i] = []string{first, p.UUID, email, p.Name, string(p.Properties)}
	}
	return answerCSV(c, []string{"Distinct ID", "Internal ID", "Email", "Name", "Properties"}, rows)
}

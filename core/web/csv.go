package web

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/csvtable"
)

// WantsCSV reports whether the client asks for CSV: format=csv, or no format and
// an Accept header that takes text/csv but not JSON. An unknown format is
// NotFound.
func (c *Call) WantsCSV() (bool, error) {
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

// CSV answers with a table. Cells that a spreadsheet would run as a formula get
// a leading apostrophe; rows is changed in place.
func (c *Call) CSV(head []string, rows [][]string) error {
	table, err := csvtable.Encode(head, rows)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	return c.Send(table)
}

// Package flags manages the feature flags of projects: flags, their versions and
// role access.
//
// A flag is a row with a key and a JSON document of filters. Every write checks
// the whole document (rules) and, in one transaction, stores the row, its new
// version and an entry of the activity log. The transaction advances the revision
// of the project (revision), and every process compiles the flags again (eval,
// decide). Writers of one project run one after the other.
//
// Packages below: eval evaluates flags and is pure; decide and local serve
// clients; document and rules read and check filters; revision locks a project
// and refreshes memory; audience counts persons; dashboards and calls keep the
// usage of flags. None of them imports this package.
package flags

// Package auth authenticates keys and manages the accounts behind them.
//
// Accounts are organizations, their members, projects, roles, and two kinds of
// keys. Project keys are public: client libraries send them to name the project
// of an event or a flag request. Personal keys are secrets of a user for the
// management interface; they have scopes and are stored hashed. The package
// knows nothing of HTTP; core/web authenticates requests with it and
// core/accounts serves the accounts.
//
// ProjectByKey runs for every public request, so all projects and their keys
// are held in memory, and a hit takes no lock and no allocation. Each change
// increments a version in the database. A process reads the version every
// RefreshInterval, and when it meets an unknown key, and reads everything again
// if it changed. So keys created by another process work immediately, and keys
// revoked by another process stop within RefreshInterval. While the database is
// down, the keys in memory stay valid.
package auth

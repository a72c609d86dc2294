package plugins

// docs/plugins/catalogue.md is what the plugins say about themselves.

//go:generate go test . -count=1 -run ^TestTheCatalogueIsWhatThePluginsSay$ -update
